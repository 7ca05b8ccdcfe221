// Products for AVX-512 VNNI with 256-bit registers.
#include "backend/cpu/kernels/avx2/matmul_blocks.h"
#include "backend/cpu/kernels/avx2/matmul_float.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx2 {
namespace {

inline __m256i dot(__m256i sum, __m256i bytes, __m256i x) {
  return _mm256_dpbusd_epi32(sum, bytes, x);
}

}  // namespace

MatmulKernel evex_vnni_matmul_kernel(ElementType type) {
  const MatmulKernel kernel = float_kernel(type);
  return kernel != nullptr ? kernel : block_kernel<VnniDots<dot>>(type);
}

}  // namespace quipu::cpu::avx2
