#include "model/arch/architecture.h"

namespace quipu {

const Architecture* find_architecture(std::string_view name) {
  for (const auto family :
       {bert_architectures(), cohere_architectures(), deepseek_architectures(), gemma_architectures(),
        glm_architectures(), gpt_architectures(), granite_architectures(), llama_architectures(),
        minicpm_architectures(), mixture_architectures(), mpt_architectures(), olmo_architectures(),
        phi_architectures(), qwen_architectures(), t5_architectures()}) {
    for (const Architecture& architecture : family) {
      if (architecture.name == name) return &architecture;
    }
  }
  return nullptr;
}

}  // namespace quipu
