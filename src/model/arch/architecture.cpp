#include "model/arch/architecture.h"

namespace quipu {

std::span<const ArchitectureFamily> architecture_families() {
  static const ArchitectureFamily kFamilies[] = {
      {"bert", "BERT and its descendants", bert_architectures()},
      {"cohere", "Cohere's Command", cohere_architectures()},
      {"deepseek", "DeepSeek", deepseek_architectures()},
      {"gemma", "Gemma", gemma_architectures()},
      {"glm", "GLM", glm_architectures()},
      {"gpt", "GPT-2 and its descendants", gpt_architectures()},
      {"granite", "Granite", granite_architectures()},
      {"grok", "Grok", grok_architectures()},
      {"llama", "Llama and its kind", llama_architectures()},
      {"minicpm", "MiniCPM", minicpm_architectures()},
      {"mixture", "Mixtures of experts", mixture_architectures()},
      {"mpt", "MPT", mpt_architectures()},
      {"olmo", "OLMo and OpenELM", olmo_architectures()},
      {"phi", "Phi", phi_architectures()},
      {"qwen", "Qwen", qwen_architectures()},
      {"t5", "T5", t5_architectures()},
  };
  return kFamilies;
}

const Architecture* find_architecture(std::string_view name) {
  for (const ArchitectureFamily& family : architecture_families()) {
    for (const Architecture& architecture : family.architectures) {
      if (architecture.name == name) return &architecture;
    }
  }
  return nullptr;
}

}  // namespace quipu
