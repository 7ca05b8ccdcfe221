#include "model/arch/architecture.h"

namespace quipu {

const Architecture* find_architecture(std::string_view name) {
  for (const auto family : {llama_architectures(), qwen_architectures(), gemma_architectures()}) {
    for (const Architecture& architecture : family) {
      if (architecture.name == name) return &architecture;
    }
  }
  return nullptr;
}

}  // namespace quipu
