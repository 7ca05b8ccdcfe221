// Encoding and decoding rows of the block formats. Decoding is exact: the values that the bytes stand for, in
// the arithmetic order that files in the wild were made for. Formats: one file each family under src/quant.
#pragma once

#include <cstddef>
#include <span>

#include "quant/element_type.h"

namespace quipu {

/// `bytes` holds out.size() elements of a decodable type (whole blocks).
void decode_row(ElementType type, std::span<const std::byte> bytes, std::span<float> out);

/// The nearest encoding that the type's published method finds. `importance`, if not empty, weighs the
/// squared error of each element (same length as `values`). Non-finite values are Error(invalid_argument) for
/// block types.
void encode_row(ElementType type, std::span<const float> values, std::span<std::byte> out,
                std::span<const float> importance = {});

}  // namespace quipu
