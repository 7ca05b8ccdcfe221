// Where Quipu's log lines go. One sink for the process, replaceable by the host program.
#pragma once

#include <functional>
#include <string_view>

namespace quipu {

enum class LogLevel { debug, info, warning, error };

/// Receives one line without a line break. Called from any thread, one call at a time; must not throw.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink; an empty function restores the default, which writes lines of at least the level set by
/// set_log_level to standard error.
void set_log_sink(LogSink sink);

/// Least level that reaches the sink. Default: warning.
void set_log_level(LogLevel level) noexcept;

}  // namespace quipu
