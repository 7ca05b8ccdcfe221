// Chooses the kernels once: by what the processor can do, or by the environment variable QUIPU_CPU.
#include "backend/cpu/kernels/dispatch.h"

#include <cstdlib>

#include "base/cpu_features.h"
#include "base/error.h"

#if defined(QUIPU_AVX512_KERNELS)
#include "backend/cpu/kernels/avx512/table.h"
#endif

namespace quipu::cpu {

const KernelTable* avx512_kernels() {
#if defined(QUIPU_AVX512_KERNELS)
  const CpuFeatures& features = cpu_features();
  if (features.avx512 && features.avx512_vnni && features.avx512_bf16) return &avx512::kTable;
#endif
  return nullptr;
}

const KernelTable& choose_kernels(std::string_view name) {
  const KernelTable* avx512 = avx512_kernels();
  if (name.empty()) return avx512 != nullptr ? *avx512 : scalar_kernels();
  if (name == "scalar") return scalar_kernels();
  if (name != "avx512") {
    fail(ErrorCode::unsupported, "QUIPU_CPU: no kernels named '{}' (there are scalar and avx512)", name);
  }
  if (avx512 == nullptr) {
    fail(ErrorCode::unsupported, "QUIPU_CPU: this processor cannot run the kernels 'avx512'");
  }
  return *avx512;
}

const KernelTable& kernels() {
  static const KernelTable& table = []() -> const KernelTable& {
    const char* wanted = std::getenv("QUIPU_CPU");
    return choose_kernels(wanted == nullptr ? "" : wanted);
  }();
  return table;
}

}  // namespace quipu::cpu
