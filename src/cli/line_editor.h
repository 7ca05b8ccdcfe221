// Lines from a person or a pipe. On a terminal they can be edited and come back from the history.
#pragma once

#include <memory>
#include <string>

namespace quipu::cli {

class LineReader {
 public:
  enum class Event {
    line,
    end,          ///< of the input
    interrupted,  ///< by Ctrl-C, or a request to terminate (interrupt.h)
  };
  virtual ~LineReader() = default;
  /// `text` is the line without its end. The prompt is shown on terminals only; bytes 1 in it stand around
  /// what takes no room, such as colours.
  virtual Event read(const std::string& prompt, std::string& text) = 0;
};

/// For standard input, whatever it is.
std::unique_ptr<LineReader> make_line_reader();

/// Without editing: for pipes, and where the library for it was not there at the build.
std::unique_ptr<LineReader> make_plain_reader();

bool input_is_terminal() noexcept;

}  // namespace quipu::cli
