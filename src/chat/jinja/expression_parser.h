// Expressions of the grammar of Jinja 3.1, by recursive descent; parser.cpp has the statements around them.
// How deep a template may nest is limited, since neither parsing nor evaluating may run out of stack.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/token_cursor.h"

namespace quipu::jinja {

class ExpressionParser : public TokenCursor {
 protected:
  explicit ExpressionParser(std::string_view source);

  /// Counts how deep we are in tags and brackets.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

  Name intern(std::string_view name);
  /// All names, by number.
  std::vector<std::string> take_names() { return std::move(name_list_); }

  bool tuple_ends(bool at_in) const;
  /// One expression, or several with commas between them.
  ExprPtr tuple(bool with_conditional = true, std::string_view end_name = {}, bool in_parentheses = false);
  ExprPtr expression();
  ExprPtr logical_or();
  /// Of `| name(arguments)`, behind the bar.
  ExprPtr one_filter(ExprPtr input);
  ExprPtr filter_chain(ExprPtr input);

  std::vector<MacroDefinition*> macros_;  // that we are inside of

 private:
  ExprPtr logical_and();
  ExprPtr logical(bool is_and, ExprPtr left, ExprPtr (ExpressionParser::*operand)());
  ExprPtr logical_not();
  std::optional<Compare::Op> comparison_operator();
  ExprPtr comparison();
  ExprPtr binary(Binary::Op op, ExprPtr left, ExprPtr (ExpressionParser::*operand)());
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary();
  ExprPtr unfiltered();
  ExprPtr primary();
  ExprPtr name(const Token& token);
  /// Adjacent strings are one.
  ExprPtr strings();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr expr);
  ExprPtr attribute(ExprPtr object);
  ExprPtr subscript(ExprPtr object);
  ExprPtr subscript_key();
  ExprPtr call(ExprPtr callee);
  CallArguments call_arguments();
  ExprPtr filtered(ExprPtr expr);
  std::string dotted_name(std::string_view what);
  bool begins_test_argument() const;
  ExprPtr test(ExprPtr input);

  std::uint32_t nesting_ = 0;
  std::map<std::string, Name, std::less<>> names_;
  std::vector<std::string> name_list_;
};

}  // namespace quipu::jinja
