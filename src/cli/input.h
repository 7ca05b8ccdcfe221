// Text from standard input.
#pragma once

#include <optional>
#include <string>

namespace quipu::cli {

/// What the user gave as text: the argument itself; all bytes of standard input, NUL and line breaks
/// included, if the argument is "-" or absent and standard input is no terminal. Throws UsageError naming
/// `what` if there is neither, Error(io) if reading fails. After a signal the text is incomplete (see
/// interrupt.h).
std::string text_argument(const std::optional<std::string>& argument, const char* what);

}  // namespace quipu::cli
