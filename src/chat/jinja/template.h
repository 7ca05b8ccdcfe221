// A Jinja template: parsed once, rendered any number of times. The language is that of Jinja 3.1 as chat
// templates are written for it (sandboxed, immutable, trim_blocks, lstrip_blocks, loop controls, tojson
// without ASCII escapes). A template is untrusted: whatever it holds, parsing and rendering end in bounded
// time and memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "chat/jinja/interpreter.h"

namespace quipu::jinja {

class Template {
 public:
  /// Error(bad_file) "... line L, column C: ..." for text that is no template. `name` stands before the line.
  Template(std::string_view source, std::string name);

  /// Error(invalid_argument) "... line L, column C: ..." for what the template refuses (raise_exception),
  /// does wrong, or takes too much of. Variables that came from text should carry the mark of input (text.h).
  MarkedBytes render(const Variables& variables, const Clock& clock, const Limits& limits = {}) const;

  const std::string& name() const { return name_; }

 private:
  std::string located(std::uint32_t at, std::string_view message) const;

  std::string name_;
  std::string source_;  // with line breaks of one kind
  std::shared_ptr<const Program> program_;
};

/// The local time.
Clock system_clock();

}  // namespace quipu::jinja
