// Small vocabularies made in the test, as metadata.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/metadata.h"
#include "vocab/byte_alphabet.h"
#include "vocab/vocab.h"

namespace quipu {

/// Token types as numbered in files.
enum class TokenType : std::int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct TinyToken {
  std::string text;
  TokenType type = TokenType::normal;
  float score = 0;
};

/// Metadata with these tokens; keys for roles are for the test to add.
inline gguf::Metadata tiny_metadata(std::string model, const std::vector<TinyToken>& tokens) {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (const TinyToken& token : tokens) {
    texts.push_back(token.text);
    scores.push_back(token.score);
    types.push_back(static_cast<std::int32_t>(token.type));
  }
  gguf::Metadata metadata("tiny.gguf");
  metadata.set("general.architecture", std::string("llama"));
  metadata.set("tokenizer.ggml.model", std::move(model));
  metadata.set("tokenizer.ggml.tokens", gguf::Array(texts));
  metadata.set("tokenizer.ggml.scores", gguf::Array(scores));
  metadata.set("tokenizer.ggml.token_type", gguf::Array(types));
  return metadata;
}

/// `first`, a byte token for each byte, `last`.
inline std::vector<TinyToken> with_byte_tokens(std::vector<TinyToken> first,
                                               const std::vector<TinyToken>& last) {
  for (int byte = 0; byte < 256; ++byte) first.push_back({fmt::format("<0x{:02X}>", byte), TokenType::byte});
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

/// <unk> <s> </s>, the bytes that `with_byte` approves of from id 3, then `tokens`.
template <typename WithByte>
gguf::Metadata tiny_spm(const std::vector<TinyToken>& tokens, WithByte with_byte) {
  std::vector<TinyToken> all = {
      {"<unk>", TokenType::unknown}, {"<s>", TokenType::control}, {"</s>", TokenType::control}};
  for (int byte = 0; byte < 256; ++byte) {
    if (with_byte(byte)) all.push_back({fmt::format("<0x{:02X}>", byte), TokenType::byte});
  }
  all.insert(all.end(), tokens.begin(), tokens.end());
  return tiny_metadata("llama", all);
}
inline gguf::Metadata tiny_spm(const std::vector<TinyToken>& tokens) {
  return tiny_spm(tokens, [](int) { return true; });
}

/// One token for each byte (id = byte), then `tokens`.
inline gguf::Metadata tiny_bpe(std::string pre, std::vector<std::string> merges,
                               const std::vector<TinyToken>& tokens = {}) {
  std::vector<TinyToken> all;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back({std::string(vocab::character_of_byte(static_cast<std::uint8_t>(byte)))});
  }
  all.insert(all.end(), tokens.begin(), tokens.end());
  gguf::Metadata metadata = tiny_metadata("gpt2", all);
  if (!pre.empty()) metadata.set("tokenizer.ggml.pre", std::move(pre));
  metadata.set("tokenizer.ggml.merges", gguf::Array(std::move(merges)));
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{0});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{0});
  metadata.set("tokenizer.ggml.add_bos_token", false);
  return metadata;
}

/// The same with texts as they are: <s>, the byte tokens from id 1, then `tokens`.
inline gguf::Metadata tiny_plain_bpe(std::string pre, std::vector<std::string> merges,
                                     const std::vector<TinyToken>& tokens) {
  gguf::Metadata metadata = tiny_metadata("gpt2", with_byte_tokens({{"<s>", TokenType::control}}, tokens));
  metadata.set("tokenizer.ggml.pre", std::move(pre));
  metadata.set("tokenizer.ggml.merges", gguf::Array(std::move(merges)));
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{0});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{0});
  return metadata;
}

/// <pad> </s> <unk>, the byte tokens from id 3, then `tokens`.
inline gguf::Metadata tiny_unigram(const std::vector<TinyToken>& tokens, bool with_bytes = true) {
  std::vector<TinyToken> first = {
      {"<pad>", TokenType::control}, {"</s>", TokenType::control}, {"<unk>", TokenType::unknown}};
  if (with_bytes) return tiny_metadata("t5", with_byte_tokens(std::move(first), tokens));
  first.insert(first.end(), tokens.begin(), tokens.end());
  return tiny_metadata("t5", first);
}

/// unk, bos, eos, pad, the byte tokens from id 4, then `tokens`.
inline gguf::Metadata tiny_plamo2(const std::vector<TinyToken>& tokens) {
  return tiny_metadata("plamo2", with_byte_tokens({{"<|plamo:unk|>", TokenType::unknown},
                                                   {"<|plamo:bos|>", TokenType::control},
                                                   {"<|plamo:eos|>", TokenType::control},
                                                   {"<|plamo:pad|>", TokenType::control}},
                                                  tokens));
}

/// <s>, the single bytes (id = byte + 1), then `texts`, escaped as in files.
inline gguf::Metadata tiny_rwkv(const std::vector<std::string>& texts) {
  std::vector<TinyToken> all = {{"<s>", TokenType::control}};
  for (int byte = 0; byte < 256; ++byte) all.push_back({fmt::format("\\x{:02x}", byte)});
  for (const std::string& text : texts) all.push_back({text});
  return tiny_metadata("rwkv", all);
}

/// [UNK] [CLS] [SEP] [PAD], then `texts` from id 4.
inline gguf::Metadata tiny_word_piece(const std::vector<std::string>& texts) {
  std::vector<TinyToken> all = {{"[UNK]", TokenType::unknown},
                                {"[CLS]", TokenType::control},
                                {"[SEP]", TokenType::control},
                                {"[PAD]", TokenType::control}};
  for (const std::string& text : texts) all.push_back({text});
  gguf::Metadata metadata = tiny_metadata("bert", all);
  metadata.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  metadata.set("tokenizer.ggml.seperator_token_id", std::uint32_t{2});
  metadata.set("tokenizer.ggml.padding_token_id", std::uint32_t{3});
  return metadata;
}

/// The pieces of a text's tokens, special ones shown.
inline std::vector<std::string> pieces_of(const Vocab& vocab, std::string_view text,
                                          bool parse_special = false) {
  std::vector<std::string> pieces;
  for (const Token token : vocab.tokenize(text, false, parse_special))
    pieces.emplace_back(vocab.piece(token, true));
  return pieces;
}

}  // namespace quipu
