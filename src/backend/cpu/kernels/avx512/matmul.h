// Matrix products and the quantization of their input rows, for processors with AVX-512 F, BW, DQ, VL, VNNI
// and BF16.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace quipu::cpu::avx512 {

/// The kernel that multiplies panels of `type`; null for a type that is not decodable.
MatmulKernel matmul_kernel(ElementType type);
/// Null for f32, whose rows are used as they are.
QuantizeKernel quantize_kernel(ActivationFormat format);

}  // namespace quipu::cpu::avx512
