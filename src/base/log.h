// Writing log lines. The sink and the level are the process's (quipu/log.h).
#pragma once

#include <fmt/format.h>

#include "quipu/log.h"

namespace quipu {

bool log_enabled(LogLevel level) noexcept;
void log_line(LogLevel level, std::string_view text) noexcept;

namespace detail {
template <typename... Args>
void log_formatted(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
}  // namespace detail

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  detail::log_formatted(LogLevel::info, format, std::forward<Args>(args)...);
}

template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  detail::log_formatted(LogLevel::warning, format, std::forward<Args>(args)...);
}

template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  detail::log_formatted(LogLevel::error, format, std::forward<Args>(args)...);
}

}  // namespace quipu
