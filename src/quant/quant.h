// Encoding and decoding rows of the block formats. Decoding is exact: the values that the bytes stand for, in
// the arithmetic order that files in the wild were made for. Formats: one file each family under src/quant.
#pragma once

#include <cstddef>
#include <span>

#include "quant/element_type.h"

namespace quipu {

/// `bytes` holds out.size() elements. Error(invalid_argument) if out.size() is not whole blocks or `bytes`
/// not of their size, Error(unsupported) for the integer types and F64. A half that is not finite gives
/// values that are not.
void decode_row(ElementType type, std::span<const std::byte> bytes, std::span<float> out);

/// The encoding with the smallest squared error that the type's search finds. `importance`, if not empty,
/// weighs the squared error of each element (as many as `values`, finite, at least 0; without effect for the
/// floats and Q8_0). Values beyond a block type's range are stored as its largest; F16 rounds them to
/// infinity. Sizes as for decode_row; a value that is not finite is Error(invalid_argument) for the block
/// types, while the float types store it.
void encode_row(ElementType type, std::span<const float> values, std::span<std::byte> out,
                std::span<const float> importance = {});

}  // namespace quipu
