#include "chat/stop_texts.h"

#include <algorithm>
#include <utility>

namespace quipu::chat {

StopTexts::StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  std::erase(texts_, std::string());
}

std::string StopTexts::add(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  std::size_t stop = std::string::npos;
  for (const std::string& text : texts_) stop = std::min(stop, held_.find(text));
  if (stop != std::string::npos) {
    found_ = true;
    return std::exchange(held_, {}).substr(0, stop);
  }
  std::size_t keep = 0;  // longest end that a stop text begins with
  for (const std::string& text : texts_) {
    for (std::size_t n = std::min(text.size() - 1, held_.size()); n > keep; --n) {
      if (std::string_view(held_).ends_with(std::string_view(text).substr(0, n))) keep = n;
    }
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopTexts::finish() {
  return std::exchange(held_, {});
}

}  // namespace quipu::chat
