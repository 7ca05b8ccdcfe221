// The questions that a loaded vocabulary answers.
#include "vocab/vocab.h"

#include <algorithm>

#include "base/error.h"
#include "vocab/clean_spaces.h"
#include "vocab/vocab_impl.h"

namespace quipu {

std::size_t Vocab::Impl::checked(Token token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= size) {
    fail(ErrorCode::invalid_argument, "token {} is outside the vocabulary of {} tokens", token, size);
  }
  return static_cast<std::size_t>(token);
}

void Vocab::Impl::require_text() const {
  if (type == VocabType::none) {
    fail(ErrorCode::unsupported, "{}: the model has no tokenizer, so its tokens have no texts", origin);
  }
}

Token Vocab::Impl::end_of_text() const {
  if (type == VocabType::word_piece) return traits.add_separator ? special.separator : kNoToken;
  return traits.add_eos ? special.eos : kNoToken;
}

VocabType Vocab::type() const {
  return impl_->type;
}
std::size_t Vocab::size() const {
  return impl_->size;
}
const SpecialTokens& Vocab::special() const {
  return impl_->special;
}
std::span<const Token> Vocab::end_tokens() const {
  return impl_->end_tokens;
}
std::span<const Token> Vocab::suppressed_tokens() const {
  return impl_->suppressed;
}
bool Vocab::add_separator() const {
  return impl_->traits.add_separator;
}
bool Vocab::add_bos() const {
  return impl_->traits.add_bos;
}
bool Vocab::add_eos() const {
  return impl_->traits.add_eos;
}
bool Vocab::add_space_prefix() const {
  return impl_->traits.add_space_prefix;
}

bool Vocab::is_end(Token token) const {
  return std::ranges::binary_search(impl_->end_tokens, token);
}

std::string_view Vocab::text(Token token) const {
  impl_->require_text();
  impl_->checked(token);
  return impl_->tokens.texts[token];
}

Token Vocab::find(std::string_view text) const {
  impl_->require_text();
  return impl_->tokens.texts.find(text);
}

float Vocab::score(Token token) const {
  impl_->require_text();
  return impl_->tokens.scores[impl_->checked(token)];
}

TokenAttributes Vocab::attributes(Token token) const {
  impl_->require_text();
  return impl_->tokens.attributes[impl_->checked(token)];
}

std::vector<Token> Vocab::Impl::tokenize(std::string_view text, bool add_special, vocab::Recognize recognize,
                                         std::span<const ByteRange> untrusted) const {
  require_text();
  std::vector<Token> out;
  out.reserve(text.size() / 3 + 2);
  if (add_special && traits.add_bos) out.push_back(special.bos);
  bool after_special = true;
  for (const vocab::Fragment& fragment : splitter->split(text, recognize, untrusted)) {
    after_special = after_special || fragment.token != kNoToken;
    if (fragment.token != kNoToken) {
      out.push_back(fragment.token);
    } else {
      algorithm->encode(fragment.text, after_special, out);
      after_special = false;
    }
  }
  const Token end = end_of_text();
  if (add_special && end != kNoToken) out.push_back(end);
  return out;
}

std::vector<Token> Vocab::tokenize(std::string_view text, bool add_special, bool parse_special) const {
  return impl_->tokenize(text, add_special,
                         parse_special ? vocab::Recognize::all : vocab::Recognize::user_defined);
}

std::vector<Token> Vocab::tokenize_untrusted(std::string_view text, bool add_special) const {
  return impl_->tokenize(text, add_special, vocab::Recognize::untrusted);
}

std::vector<Token> Vocab::tokenize_prompt(std::string_view text, std::span<const ByteRange> untrusted) const {
  return impl_->tokenize(text, false, vocab::Recognize::all, untrusted);
}

std::string_view Vocab::piece(Token token, bool special) const {
  impl_->require_text();
  const TokenAttributes attributes = impl_->tokens.attributes[impl_->checked(token)];
  if (!special && attributes.any(TokenAttribute::control | TokenAttribute::unknown)) return {};
  return impl_->pieces[token];
}

std::string Vocab::detokenize(std::span<const Token> tokens, bool remove_special,
                              bool unparse_special) const {
  impl_->require_text();
  bool remove_space = impl_->traits.add_space_prefix;
  if (remove_special && add_bos() && !tokens.empty() && tokens.front() == impl_->special.bos) {
    tokens = tokens.subspan(1);
    remove_space = false;
  }
  if (remove_special && impl_->end_of_text() != kNoToken && !tokens.empty() &&
      tokens.back() == impl_->end_of_text()) {
    tokens = tokens.first(tokens.size() - 1);
  }
  std::string text;
  for (const Token token : tokens) {
    std::string_view bytes = piece(token, unparse_special);
    if (remove_space && bytes.starts_with(' ')) bytes.remove_prefix(1);
    remove_space = false;
    text.append(bytes);
  }
  return impl_->traits.clean_spaces ? vocab::clean_spaces(text) : text;
}

}  // namespace quipu
