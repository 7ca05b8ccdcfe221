// From a file's metadata to a vocabulary: tokens, then roles, then what follows from both.
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "vocab/special_tokens.h"
#include "vocab/vocab_impl.h"

namespace quipu {

namespace {

using vocab::TokenTable;

constexpr const char* kModelKey = "tokenizer.ggml.model";
constexpr const char* kTokensKey = "tokenizer.ggml.tokens";
constexpr const char* kScoresKey = "tokenizer.ggml.scores";
constexpr const char* kTypesKey = "tokenizer.ggml.token_type";
constexpr std::size_t kMaxTokens = std::numeric_limits<std::int32_t>::max() / 2;

std::size_t size_without_tokens(const gguf::Metadata& metadata) {
  const std::string* const architecture = metadata.get_string("general.architecture");
  if (architecture == nullptr) return 0;
  const std::size_t size = metadata.get_u32(*architecture + ".vocab_size").value_or(0);
  if (size > kMaxTokens) {
    fail(ErrorCode::bad_file, "{}: key '{}.vocab_size': {} tokens are too many", metadata.origin(),
         *architecture, size);
  }
  return size;
}

// Numbers as in the file.
TokenAttributes attributes_of_type(std::int32_t type) {
  switch (type) {
    case 1: return TokenAttribute::normal;
    case 2: return TokenAttribute::unknown;
    case 3: return TokenAttribute::control;
    case 4: return TokenAttribute::user_defined;
    case 5: return TokenAttribute::unused;
    case 6: return TokenAttribute::byte;
    default: return {};
  }
}

void read_texts(const gguf::Metadata& metadata, TokenTable& tokens) {
  const std::vector<std::string>* const texts = metadata.get_strings(kTokensKey);
  if (texts == nullptr) fail(ErrorCode::bad_file, "{}: key '{}' is missing", metadata.origin(), kTokensKey);
  if (texts->empty())
    fail(ErrorCode::bad_file, "{}: key '{}' is an empty array", metadata.origin(), kTokensKey);
  if (texts->size() > kMaxTokens) {
    fail(ErrorCode::bad_file, "{}: key '{}': {} tokens are too many", metadata.origin(), kTokensKey,
         texts->size());
  }
  tokens.texts.reserve(texts->size());
  std::size_t n_equal = 0;
  for (const std::string& text : *texts) {
    const Token token =
        tokens.texts.append(text.empty() ? fmt::format("[EMPTY_{}]", tokens.texts.size()) : text);
    if (tokens.texts.publish(token) != token) ++n_equal;
  }
  if (n_equal > 0) {
    log_warning("{}: key '{}': {} tokens have the text of an earlier one, which is used in their place",
                metadata.origin(), kTokensKey, n_equal);
  }
}

void check_length(const gguf::Metadata& metadata, const char* key, std::size_t length, std::size_t n_tokens) {
  if (length >= n_tokens) return;
  fail(ErrorCode::bad_file, "{}: key '{}' has {} elements for {} tokens", metadata.origin(), key, length,
       n_tokens);
}

TokenTable read_tokens(const gguf::Metadata& metadata) {
  TokenTable tokens;
  read_texts(metadata, tokens);
  const auto n_tokens = static_cast<std::size_t>(tokens.texts.size());

  tokens.scores.assign(n_tokens, 0.0f);
  if (std::optional<std::vector<float>> scores = metadata.get_f32s(kScoresKey)) {
    check_length(metadata, kScoresKey, scores->size(), n_tokens);
    for (std::size_t i = 0; i < n_tokens; ++i) {
      if (std::isnan((*scores)[i])) {
        fail(ErrorCode::bad_file, "{}: key '{}': element {} is not a number", metadata.origin(), kScoresKey,
             i);
      }
      tokens.scores[i] = (*scores)[i];
    }
  }
  tokens.attributes.assign(n_tokens, TokenAttribute::normal);
  tokens.control.assign(n_tokens, false);
  if (const std::optional<std::vector<std::int32_t>> types = metadata.get_i32s(kTypesKey)) {
    check_length(metadata, kTypesKey, types->size(), n_tokens);
    for (std::size_t i = 0; i < n_tokens; ++i) {
      tokens.attributes[i] = attributes_of_type((*types)[i]);
      tokens.control[i] = tokens.attributes[i] == TokenAttribute::control;
    }
  }
  return tokens;
}

bool read_add(const gguf::Metadata& metadata, const char* key, bool implied, Token token) {
  const bool add = metadata.get_bool(key).value_or(implied);
  if (add && token == kNoToken) {
    log_warning("{}: '{}' is on, but there is no such token: none is added", metadata.origin(), key);
    return false;
  }
  return add;
}

// Tokens that are never to be generated. As with roles, ids outside the vocabulary are left out.
std::vector<Token> read_suppressed(const gguf::Metadata& metadata, Token n_tokens) {
  constexpr const char* kKey = "tokenizer.ggml.suppress_tokens";
  std::vector<Token> suppressed = metadata.get_i32s(kKey).value_or(std::vector<Token>());
  const std::size_t n_outside =
      std::erase_if(suppressed, [&](Token token) { return token < 0 || token >= n_tokens; });
  if (n_outside > 0) {
    log_warning("{}: key '{}': {} ids are outside the vocabulary of {} tokens and are ignored",
                metadata.origin(), kKey, n_outside, n_tokens);
  }
  return suppressed;
}

Token newline_of(const vocab::Algorithm& algorithm, const TokenTable& tokens, VocabType type, Token padding) {
  if (type == VocabType::spm) {
    for (const std::string_view text : {"<0x0A>", "\n"}) {
      if (const Token token = tokens.texts.find(text); token != kNoToken) return token;
    }
    return padding;
  }
  if (type == VocabType::word_piece) return padding;  // line breaks are lost
  std::vector<Token> newline;
  algorithm.encode("\n", false, newline);
  return newline.empty() ? padding : newline.front();
}

}  // namespace

Vocab Vocab::load(const gguf::Metadata& metadata) {
  const std::string* const model = metadata.get_string(kModelKey);
  if (model == nullptr) fail(ErrorCode::bad_file, "{}: key '{}' is missing", metadata.origin(), kModelKey);

  auto impl = std::make_shared<Impl>();
  impl->origin = metadata.origin();
  if (*model == "no_vocab" || *model == "none") {
    impl->size = size_without_tokens(metadata);
    return Vocab(std::move(impl));
  }
  const vocab::AlgorithmRow* const row = vocab::find_algorithm(*model);
  if (row == nullptr) {
    fail(ErrorCode::unsupported, "{}: tokenizer '{}' ({}) is not supported", metadata.origin(), *model,
         kModelKey);
  }

  impl->type = row->type;
  impl->traits = row->traits(metadata);
  impl->tokens = read_tokens(metadata);
  TokenTable& tokens = impl->tokens;
  impl->size = static_cast<std::size_t>(tokens.texts.size());

  SpecialTokens& special = impl->special;
  special = vocab::read_special_tokens(metadata, impl->traits.special, tokens.texts.size());
  vocab::recognize_special_tokens(tokens, special);
  impl->end_tokens = vocab::find_end_tokens(tokens, special);
  vocab::apply_model_rules(metadata, tokens);

  vocab::Traits& traits = impl->traits;
  traits.add_bos = read_add(metadata, "tokenizer.ggml.add_bos_token", traits.add_bos, special.bos);
  traits.add_eos = read_add(metadata, "tokenizer.ggml.add_eos_token", traits.add_eos, special.eos);
  traits.add_separator =
      read_add(metadata, "tokenizer.ggml.add_sep_token", traits.add_separator, special.separator);
  if (traits.force_bos && special.bos != kNoToken) traits.add_bos = true;
  traits.add_space_prefix =
      metadata.get_bool("tokenizer.ggml.add_space_prefix").value_or(traits.add_space_prefix);

  impl->algorithm = row->make({metadata, tokens, special.unknown, traits.add_space_prefix});
  impl->suppressed = read_suppressed(metadata, tokens.texts.size());
  special.newline = newline_of(*impl->algorithm, tokens, row->type, special.padding);

  std::vector<vocab::SpecialSplitter::Entry> entries;
  for (Token token = 0; token < tokens.texts.size(); ++token) {
    const TokenAttributes attributes = tokens.attributes[static_cast<std::size_t>(token)];
    if (vocab::is_special(attributes))
      entries.push_back({tokens.texts[token], token, attributes, !tokens.may_come_from_text(token)});
    impl->pieces.append(impl->algorithm->piece(tokens.texts[token], attributes));
  }
  impl->splitter = std::make_unique<vocab::SpecialSplitter>(std::move(entries));
  return Vocab(std::move(impl));
}

}  // namespace quipu
