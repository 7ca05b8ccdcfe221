// The kernels of this folder's files, by family.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace quipu::cpu::avx512 {

/// Null for a type of another family.
MatmulKernel float_kernel(ElementType type);
MatmulKernel legacy_kernel(ElementType type);
MatmulKernel k_kernel(ElementType type);

}  // namespace quipu::cpu::avx512
