// A size that passes every check may still be more than the machine has. That is an Error like any other.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"

namespace quipu::gguf {

/// Runs `work`; an allocation that fails in it becomes Error(out_of_memory) naming `origin`.
template <typename Work>
auto or_out_of_memory(const std::string& origin, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "{}: not enough memory", origin);
  } catch (const std::length_error&) {
    fail(ErrorCode::out_of_memory, "{}: not enough memory", origin);
  }
}

}  // namespace quipu::gguf
