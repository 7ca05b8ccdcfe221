#include "cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "quipu/error.h"

namespace quipu::cli {

namespace {

std::string read_standard_input() {
  std::string text;
  std::array<char, 65536> buffer;
  while (!interrupted()) {
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n == 0) break;
    if (n > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      throw Error(ErrorCode::io, fmt::format("standard input: {}", std::strerror(errno)));
    }
  }
  return text;
}

}  // namespace

std::string text_argument(const std::optional<std::string>& argument, const char* what) {
  if (argument && *argument != "-") return *argument;
  if (!argument && ::isatty(STDIN_FILENO) == 1) {
    throw UsageError(fmt::format("{} is missing: give it as an argument or on standard input", what));
  }
  return read_standard_input();
}

}  // namespace quipu::cli
