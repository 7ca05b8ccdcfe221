// The products that need no integers; for the files that choose kernels by type.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace quipu::cpu::avx2 {

/// Null for block types.
MatmulKernel float_kernel(ElementType type);

}  // namespace quipu::cpu::avx2
