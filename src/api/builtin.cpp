#include "api/builtin.h"

extern "C" {
extern const std::byte quipu_builtin_model[];
extern const std::byte quipu_builtin_model_end[];
}

namespace quipu {

std::span<const std::byte> builtin_model_bytes() {
  return {quipu_builtin_model, static_cast<std::size_t>(quipu_builtin_model_end - quipu_builtin_model)};
}

}  // namespace quipu
