// The instruction sets whose products and quantizers this processor can run; the first is the scalar
// reference.
#pragma once

#include <ostream>
#include <string_view>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/scalar/matmul.h"
#include "base/cpu_features.h"
#ifdef __x86_64__
#include "backend/cpu/kernels/avx512/matmul.h"
#endif

namespace quipu::test {

struct KernelSet {
  std::string_view name;
  cpu::MatmulKernel (*matmul)(ElementType);
  cpu::QuantizeKernel (*quantize)(cpu::ActivationFormat);
};

inline std::ostream& operator<<(std::ostream& stream, const KernelSet& set) {
  return stream << set.name;
}

inline std::vector<KernelSet> kernel_sets() {
  std::vector<KernelSet> sets = {{"scalar", cpu::scalar::matmul_kernel, cpu::scalar::quantize_kernel}};
#ifdef __x86_64__
  if (cpu_features().avx512_vnni && cpu_features().avx512_bf16) {
    sets.push_back({"avx512", cpu::avx512::matmul_kernel, cpu::avx512::quantize_kernel});
  }
#endif
  return sets;
}

}  // namespace quipu::test
