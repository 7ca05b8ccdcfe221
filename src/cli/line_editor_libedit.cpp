// The line editor by libedit. Characters are read here and not by the library, so that Ctrl-C gives up the
// line and nothing else.
#include <histedit.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cwchar>

#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/output.h"
#include "quipu/error.h"

namespace quipu::cli {

namespace {

constexpr int kHistorySize = 1000;

/// The next character of the terminal: 1, or 0 at the end, or -1 after an interrupt or for a failure.
int read_character(EditLine*, wchar_t* character) {
  std::mbstate_t state = {};
  while (true) {
    char byte = 0;
    if (!wait_for_input()) return -1;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n <= 0) return static_cast<int>(n);
    const std::size_t result = std::mbrtowc(character, &byte, 1, &state);
    if (result == static_cast<std::size_t>(-1)) {
      state = {};  // no text in this encoding: left out
    } else if (result != static_cast<std::size_t>(-2)) {
      return 1;
    }
  }
}

class EditingReader final : public LineReader {
 public:
  EditingReader() {
    std::setlocale(LC_CTYPE, "C.UTF-8");
    history_ = history_init();
    editor_ = el_init("quipu", stdin, stdout, stderr);
    if (history_ == nullptr || editor_ == nullptr) {
      throw Error(ErrorCode::out_of_memory, "the line editor does not start");
    }
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistorySize);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_GETCFN, read_character);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT_ESC, show_prompt, '\1');
  }
  ~EditingReader() override {
    if (editor_ != nullptr) el_end(editor_);
    if (history_ != nullptr) history_end(history_);
  }
  EditingReader(const EditingReader&) = delete;
  EditingReader& operator=(const EditingReader&) = delete;

  Event read(const std::string& prompt, std::string& text) override {
    prompt_ = prompt;
    int n = 0;
    const char* line = el_gets(editor_, &n);
    if (line == nullptr || n <= 0) {
      el_reset(editor_);
      write_output("\n");
      return interrupted() ? Event::interrupted : Event::end;
    }
    text.assign(line, static_cast<std::size_t>(n));
    if (text.ends_with('\n')) text.pop_back();
    HistEvent event;
    if (!text.empty()) history(history_, &event, H_ENTER, text.c_str());
    return Event::line;
  }

 private:
  static char* show_prompt(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return static_cast<EditingReader*>(self)->prompt_.data();
  }

  History* history_ = nullptr;
  EditLine* editor_ = nullptr;
  std::string prompt_;
};

}  // namespace

std::unique_ptr<LineReader> make_line_reader() {
  if (!input_is_terminal() || !output_is_terminal()) return make_plain_reader();
  return std::make_unique<EditingReader>();
}

}  // namespace quipu::cli
