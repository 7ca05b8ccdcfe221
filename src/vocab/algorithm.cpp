// The table of tokenizer algorithms.
#include "vocab/algorithm.h"

#include <array>

namespace quipu::vocab {

namespace {

constexpr std::array kRows = {
    AlgorithmRow{"llama", VocabType::spm, spm_traits, make_spm},
    AlgorithmRow{"gpt2", VocabType::bpe, bpe_traits, make_bpe},
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

const AlgorithmRow* find_algorithm(std::string_view name) {
  for (const AlgorithmRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

int byte_of_text(std::string_view token_text) {
  if (token_text.size() != 6 || !token_text.starts_with("<0x") || token_text[5] != '>') return -1;
  const int high = hex_digit(token_text[3]);
  const int low = hex_digit(token_text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace quipu::vocab
