// The table of pre-tokenizers. Patterns are written so that they never backtrack over more than one run of
// white space: possessive quantifiers wherever what follows cannot need a character back. Text that no
// alternative matches would become words of its own.
#include "vocab/pre_tokenizer.h"

#include <algorithm>
#include <array>

namespace quipu::vocab {

namespace {

using Texts = std::string_view;

// The contractions in upper case too; (?i) would let U+017F and U+212A count as s and k.
#define QUIPU_CONTRACTIONS "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"

constexpr Texts kGpt2Pattern =
    R"('(?:[stmd]|re|ve|ll)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s+(?!\S)|\s+)";

constexpr std::array kGpt2 = {kGpt2Pattern};

constexpr std::array kLlama3 = {
    Texts(QUIPU_CONTRACTIONS
          R"(|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*[\r\n]+|\s+(?!\S)|\s+)")};

constexpr std::array kQwen2 = {
    Texts(QUIPU_CONTRACTIONS
          R"(|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*[\r\n]+|\s+(?!\S)|\s+)")};

constexpr std::array kDefault = {Texts(R"([\p{P}$+<=>^~|]++)"), kGpt2Pattern, Texts(R"(\p{N}++)"),
                                 Texts("[0-9]{3}")};

#undef QUIPU_CONTRACTIONS

constexpr std::array kGpt2Names = {Texts("gpt-2")};
constexpr std::array kLlama3Names = {Texts("llama-bpe"), Texts("llama3"), Texts("llama-v3")};
constexpr std::array kQwen2Names = {Texts("qwen2")};
constexpr std::array kDefaultNames = {Texts("default")};

constexpr std::array kRows = std::to_array<PreTokenizerRow>({
    {.names = kDefaultNames, .patterns = kDefault, .clean_spaces = true},
    {.names = kGpt2Names, .patterns = kGpt2, .clean_spaces = true},
    {.names = kLlama3Names,
     .patterns = kLlama3,
     .add_bos = true,
     .ignore_merges = true,
     .clean_spaces = true},
    {.names = kQwen2Names, .patterns = kQwen2},
});

}  // namespace

const PreTokenizerRow* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizerRow& row : kRows) {
    if (std::find(row.names.begin(), row.names.end(), name) != row.names.end()) return &row;
  }
  return nullptr;
}

PreTokenizer::PreTokenizer(const PreTokenizerRow& row) {
  for (const std::string_view pattern : row.patterns) patterns_.emplace_back(std::string(pattern));
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
