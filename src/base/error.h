// Throwing and checking: the formatting side of quipu::Error.
#pragma once

#include <fmt/format.h>

#include "quipu/error.h"

namespace quipu {

/// Throws Error(code, formatted message). Messages name what is wrong and where, in one line.
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void fail_check(const char* condition, const char* file, int line);

}  // namespace quipu

/// An invariant of Quipu's own (never a condition that input can break). Throws Error(internal); does not
/// abort.
#define QUIPU_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::quipu::fail_check(#condition, __FILE__, __LINE__))
