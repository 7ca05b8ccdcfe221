#include "quipu/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "api/access.h"
#include "api/guard.h"
#include "vocab/stream_decoder.h"

namespace quipu {

namespace {

std::optional<Token> if_any(Token token) {
  return token == kNoToken ? std::nullopt : std::optional(token);
}

Token SpecialTokens::*member_of(TokenRole role) {
  switch (role) {
    case TokenRole::bos: return &SpecialTokens::bos;
    case TokenRole::eos: return &SpecialTokens::eos;
    case TokenRole::eot: return &SpecialTokens::eot;
    case TokenRole::eom: return &SpecialTokens::eom;
    case TokenRole::unknown: return &SpecialTokens::unknown;
    case TokenRole::separator: return &SpecialTokens::separator;
    case TokenRole::padding: return &SpecialTokens::padding;
    case TokenRole::mask: return &SpecialTokens::mask;
    case TokenRole::newline: return &SpecialTokens::newline;
    case TokenRole::fim_prefix: return &SpecialTokens::fim_prefix;
    case TokenRole::fim_suffix: return &SpecialTokens::fim_suffix;
    case TokenRole::fim_middle: return &SpecialTokens::fim_middle;
    case TokenRole::fim_padding: return &SpecialTokens::fim_padding;
    case TokenRole::fim_repository: return &SpecialTokens::fim_repository;
    case TokenRole::fim_separator: return &SpecialTokens::fim_separator;
  }
  return nullptr;
}

// Copies all of `items` or nothing: their number, or minus it.
template <typename Items>
std::int32_t copy_if_it_fits(const Items& items, std::span<typename Items::value_type> out) {
  if (items.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(ErrorCode::invalid_argument, "the result has more elements than a 32-bit number counts");
  }
  const auto n = static_cast<std::int32_t>(items.size());
  if (items.size() > out.size()) return -n;
  std::ranges::copy(items, out.begin());
  return n;
}

}  // namespace

bool Tokenizer::has_text() const noexcept {
  return vocab_->type() != VocabType::none;
}
std::size_t Tokenizer::size() const noexcept {
  return vocab_->size();
}

std::vector<Token> Tokenizer::tokenize(std::string_view text, TokenizeOptions options) const {
  return guarded([&] {
    return options.untrusted ? vocab_->tokenize_untrusted(text, options.add_special)
                             : vocab_->tokenize(text, options.add_special, options.parse_special);
  });
}
std::string Tokenizer::piece(Token token, bool show_special) const {
  return guarded([&] { return std::string(vocab_->piece(token, show_special)); });
}
std::string Tokenizer::detokenize(std::span<const Token> tokens, DetokenizeOptions options) const {
  return guarded([&] { return vocab_->detokenize(tokens, options.remove_special, options.show_special); });
}

std::int32_t Tokenizer::tokenize_into(std::span<Token> out, std::string_view text,
                                      TokenizeOptions options) const {
  return copy_if_it_fits(tokenize(text, options), out);
}
std::int32_t Tokenizer::piece_into(std::span<char> out, Token token, bool show_special,
                                   std::int32_t skip_spaces) const {
  return guarded([&] {
    std::string_view bytes = vocab_->piece(token, show_special);
    for (; skip_spaces > 0 && bytes.starts_with(' '); --skip_spaces) bytes.remove_prefix(1);
    return copy_if_it_fits(bytes, out);
  });
}
std::int32_t Tokenizer::detokenize_into(std::span<char> out, std::span<const Token> tokens,
                                        DetokenizeOptions options) const {
  return copy_if_it_fits(detokenize(tokens, options), out);
}

std::optional<Token> Tokenizer::token(TokenRole role) const noexcept {
  const auto member = member_of(role);
  return member == nullptr ? std::nullopt : if_any(vocab_->special().*member);
}
std::optional<Token> Tokenizer::bos() const noexcept {
  return if_any(vocab_->special().bos);
}
std::optional<Token> Tokenizer::eos() const noexcept {
  return if_any(vocab_->special().eos);
}
bool Tokenizer::ends_generation(Token token) const {
  return guarded([&] { return vocab_->is_end(token); });
}
std::span<const Token> Tokenizer::end_tokens() const noexcept {
  return vocab_->end_tokens();
}
std::span<const Token> Tokenizer::suppressed_tokens() const noexcept {
  return vocab_->suppressed_tokens();
}
std::string_view Tokenizer::spelling(Token token) const {
  return guarded([&] { return vocab_->text(token); });
}
std::optional<Token> Tokenizer::find(std::string_view spelling) const {
  return guarded([&] { return if_any(vocab_->find(spelling)); });
}
float Tokenizer::score(Token token) const {
  return guarded([&] { return vocab_->score(token); });
}
std::uint32_t Tokenizer::attributes(Token token) const {
  return guarded([&] { return std::uint32_t{vocab_->attributes(token).bits()}; });
}
bool Tokenizer::is_control(Token token) const {
  return guarded([&] { return vocab_->attributes(token).any(TokenAttribute::control); });
}

struct TextStream::Impl {
  StreamDecoder decoder;
};

TextStream::TextStream(Tokenizer tokenizer, bool show_special)
    : impl_(guarded([&] {
        return std::make_unique<Impl>(Impl{StreamDecoder(ApiAccess::vocab(tokenizer), show_special)});
      })) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

std::string TextStream::add(Token token) {
  return guarded([&] { return impl_->decoder.push(token); });
}
std::string TextStream::finish() {
  return guarded([&] { return impl_->decoder.finish(); });
}

}  // namespace quipu
