// Words of a text: one pattern after the other, each within the parts of the one before.
#include "vocab/pre_tokenizer.h"

#include <algorithm>

namespace quipu::vocab {

const PreTokenizerRow* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizerRow& row : pre_tokenizers()) {
    if (std::find(row.names.begin(), row.names.end(), name) != row.names.end()) return &row;
  }
  return nullptr;
}

PreTokenizer::PreTokenizer(const PreTokenizerRow& row) {
  for (const std::string& pattern : row.patterns) patterns_.emplace_back(pattern);
}

void PreTokenizer::split(std::string_view text, std::vector<std::size_t>& ends) const {
  std::string storage;
  const std::string_view subject = prepare_subject(text, storage);
  if (patterns_.size() == 1) {
    patterns_.front().split(subject, 0, ends);
    return;
  }
  std::vector<std::size_t> parts = {subject.size()};
  std::vector<std::size_t> finer;
  for (const Regex& pattern : patterns_) {
    finer.clear();
    std::size_t begin = 0;
    for (const std::size_t end : parts) {
      pattern.split(subject.substr(begin, end - begin), begin, finer);
      begin = end;
    }
    parts.swap(finer);
  }
  ends.insert(ends.end(), parts.begin(), parts.end());
}

}  // namespace quipu::vocab
