// Encoding of cells in the block types, for the kernels that store them.
#pragma once

#include <cstddef>

#include "quant/element_type.h"

namespace quipu::cpu::avx2 {

/// n_blocks blocks of 32 numbers of a cache type that has blocks, made finite: the bytes of encode_finite()
/// of kernels/kv_layout.h.
void encode_blocks(ElementType type, const float* x, std::size_t n_blocks, std::byte* out);

}  // namespace quipu::cpu::avx2
