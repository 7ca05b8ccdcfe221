// The table of tokenizer algorithms.
#include "vocab/algorithm.h"

#include <fmt/format.h>

#include <array>

#include "vocab/special_tokens.h"

namespace quipu::vocab {

namespace {

constexpr std::array kRows = {
    AlgorithmRow{"llama", VocabType::spm, spm_traits, make_spm},
    AlgorithmRow{"gpt2", VocabType::bpe, bpe_traits, make_bpe},
    AlgorithmRow{"gemma4", VocabType::bpe, bpe_traits, make_bpe},
    AlgorithmRow{"bert", VocabType::word_piece, word_piece_traits, make_word_piece},
    AlgorithmRow{"t5", VocabType::unigram, unigram_traits, make_unigram},
    AlgorithmRow{"rwkv", VocabType::rwkv, rwkv_traits, make_rwkv},
    AlgorithmRow{"plamo2", VocabType::plamo2, plamo2_traits, make_plamo2},
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

std::string Algorithm::piece(std::string_view token_text, TokenAttributes attributes) const {
  if (is_special(attributes)) return std::string(token_text);
  if (attributes.any(TokenAttribute::normal)) return decode(token_text);
  if (!attributes.any(TokenAttribute::byte)) return {};
  const int byte = byte_of_text(token_text);
  return byte < 0 ? decode(token_text) : std::string(1, static_cast<char>(byte));
}

int byte_of_digits(std::string_view digits) {
  if (digits.size() != 2) return -1;
  const int high = hex_digit(digits[0]);
  const int low = hex_digit(digits[1]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

int byte_of_text(std::string_view token_text) {
  if (token_text.size() != 6 || !token_text.starts_with("<0x") || token_text[5] != '>') return -1;
  return byte_of_digits(token_text.substr(3, 2));
}

std::array<Token, 256> find_byte_tokens(const TokenTable& tokens) {
  std::array<Token, 256> result{};
  for (unsigned byte = 0; byte < 256; ++byte)
    result[byte] = tokens.texts.find(fmt::format("<0x{:02X}>", byte));
  return result;
}

}  // namespace quipu::vocab
