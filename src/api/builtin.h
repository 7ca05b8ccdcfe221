// The model file that is part of the library (models/quipu-mini.gguf, by way of builtin.S.in).
#pragma once

#include <cstddef>
#include <span>

namespace quipu {

inline constexpr const char* kBuiltinName = "<built-in>";

/// The whole file, aligned to 64 bytes.
std::span<const std::byte> builtin_model_bytes();

}  // namespace quipu
