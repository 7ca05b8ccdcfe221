// Where a parser is in the words of a template: looks at them, and says what it wanted instead.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/token.h"

namespace quipu::jinja {

class TokenCursor {
 public:
  explicit TokenCursor(std::string_view source) : tokens_(tokenize(source)) {}

 protected:
  using Type = Token::Type;

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& next() {
    const Token& token = current();
    if (token.type != Type::end) ++at_;
    return token;
  }
  bool is_op(std::string_view op) const { return current().type == Type::op && current().text == op; }
  bool is_name(std::string_view name) const { return current().type == Type::name && current().text == name; }
  bool skip_op(std::string_view op) {
    const bool is = is_op(op);
    if (is) next();
    return is;
  }
  bool skip_name(std::string_view name) {
    const bool is = is_name(name);
    if (is) next();
    return is;
  }

  /// Throws SyntaxError; so do those below.
  [[noreturn]] static void fault(const Token& token, std::string message) {
    throw SyntaxError{token.at, std::move(message)};
  }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    fault(current(), fmt::format("expected {}, got {}", wanted, got()));
  }
  const Token& expect(Type type, std::string_view wanted) {
    if (current().type != type) unexpected(wanted);
    return next();
  }
  void expect_op(std::string_view op) {
    if (!skip_op(op)) unexpected(fmt::format("'{}'", op));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) unexpected(fmt::format("'{}'", name));
  }

 private:
  std::string got() const {
    switch (current().type) {
      case Type::data: return "text";
      case Type::variable_end: return "the end of the print statement";
      case Type::block_end: return "the end of the tag";
      case Type::end: return "the end of the template";
      default: return fmt::format("'{}'", current().text.substr(0, 40));
    }
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace quipu::jinja
