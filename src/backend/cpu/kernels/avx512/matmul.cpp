// Which kernel multiplies which type.
#include "backend/cpu/kernels/instruction_sets.h"

#include "backend/cpu/kernels/avx512/matmul_kernels.h"

namespace quipu::cpu::avx512 {

MatmulKernel matmul_kernel(ElementType type) {
  for (const auto family : {float_kernel, legacy_kernel, k_kernel}) {
    if (const MatmulKernel kernel = family(type)) return kernel;
  }
  return nullptr;
}

}  // namespace quipu::cpu::avx512
