// The line editor where there is no library for it.
#include "cli/line_editor.h"

namespace quipu::cli {

std::unique_ptr<LineReader> make_line_reader() {
  return make_plain_reader();
}

}  // namespace quipu::cli
