// Texts that end an answer. They may come in several pieces, so what could still become one is held back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quipu::chat {

class StopTexts {
 public:
  /// Empty ones are left out.
  explicit StopTexts(std::vector<std::string> texts);
  /// What of the text so far can be given out: all before a stop text, or before what may begin one.
  std::string add(std::string_view piece);
  bool found() const { return found_; }
  /// The end of the text: what was held back, unless a stop text was found.
  std::string finish();

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace quipu::chat
