// Products for AVX2 alone.
#include "backend/cpu/kernels/avx2/matmul_blocks.h"
#include "backend/cpu/kernels/avx2/matmul_float.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx2 {

MatmulKernel matmul_kernel(ElementType type) {
  const MatmulKernel kernel = float_kernel(type);
  return kernel != nullptr ? kernel : block_kernel<PlainDots>(type);
}

}  // namespace quipu::cpu::avx2
