#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/output.h"
#include "quipu/error.h"

namespace quipu::cli {

namespace {

class PlainReader final : public LineReader {
 public:
  Event read(const std::string& prompt, std::string& text) override {
    std::string shown = prompt;
    std::erase(shown, '\1');
    if (input_is_terminal()) write_output(shown);
    while (true) {
      const std::size_t end = pending_.find('\n');
      if (end != std::string::npos) {
        text = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        if (text.ends_with('\r')) text.pop_back();
        return Event::line;
      }
      if (!wait_for_input()) return Event::interrupted;
      if (!fill()) break;
    }
    text = std::exchange(pending_, {});
    return text.empty() ? Event::end : Event::line;  // the last line need not have an end
  }

 private:
  /// False at the end of the input.
  bool fill() {
    std::array<char, 65536> buffer;
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n > 0) pending_.append(buffer.data(), static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) {
      throw Error(ErrorCode::io, fmt::format("standard input: {}", std::strerror(errno)));
    }
    return n != 0;
  }

  std::string pending_;
};

}  // namespace

std::unique_ptr<LineReader> make_plain_reader() {
  return std::make_unique<PlainReader>();
}

bool input_is_terminal() noexcept {
  return ::isatty(STDIN_FILENO) == 1;
}

}  // namespace quipu::cli
