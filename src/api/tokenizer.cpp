#include "quipu/tokenizer.h"

#include <utility>

#include "api/access.h"
#include "api/guard.h"
#include "vocab/stream_decoder.h"

namespace quipu {

namespace {

std::optional<Token> if_any(Token token) {
  return token == kNoToken ? std::nullopt : std::optional(token);
}

}  // namespace

bool Tokenizer::has_text() const noexcept {
  return vocab_->type() != VocabType::none;
}
std::size_t Tokenizer::size() const noexcept {
  return vocab_->size();
}

std::vector<Token> Tokenizer::tokenize(std::string_view text, TokenizeOptions options) const {
  return guarded([&] { return vocab_->tokenize(text, options.add_special, options.parse_special); });
}
std::string Tokenizer::piece(Token token, bool show_special) const {
  return guarded([&] { return std::string(vocab_->piece(token, show_special)); });
}
std::string Tokenizer::detokenize(std::span<const Token> tokens, DetokenizeOptions options) const {
  return guarded([&] { return vocab_->detokenize(tokens, options.remove_special, options.show_special); });
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
