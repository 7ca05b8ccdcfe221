#include "chat/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace quipu::jinja {

namespace {

constexpr std::uint32_t kMaxNesting = 100;  // of tags and brackets while parsing
constexpr std::uint32_t kMaxHeight = 300;   // of an expression's tree: chains grow without nesting

template <typename Node>
ExprPtr make(std::uint32_t at, Node node, std::uint32_t height_below = 0) {
  if (height_below >= kMaxHeight) throw SyntaxError{at, "the expression is too long or nested too deeply"};
  return std::make_unique<Expr>(Expr{at, height_below + 1, std::move(node)});
}
std::uint32_t height(const ExprPtr& expr) {
  return expr ? expr->height : 0;
}
std::uint32_t height(const std::vector<ExprPtr>& exprs) {
  std::uint32_t result = 0;
  for (const ExprPtr& expr : exprs) result = std::max(result, height(expr));
  return result;
}
std::uint32_t height(const CallArguments& arguments) {
  std::uint32_t result =
      std::max({height(arguments.positional), height(arguments.spread), height(arguments.spread_named)});
  for (const auto& [name, value] : arguments.named) result = std::max(result, height(value));
  return result;
}

}  // namespace

ExpressionParser::ExpressionParser(std::string_view source) : TokenCursor(source) {
  for (const char* name : {"loop", "caller", "varargs", "kwargs"}) intern(name);
}

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting) fault(parser_.current(), "the template is nested too deeply");
}

Name ExpressionParser::intern(std::string_view name) {
  const auto [it, is_new] = names_.emplace(name, static_cast<Name>(name_list_.size()));
  if (is_new) name_list_.emplace_back(name);
  return it->second;
}

bool ExpressionParser::tuple_ends(bool at_in) const {
  return current().type == Type::variable_end || current().type == Type::block_end || is_op(")") ||
         (at_in && is_name("in"));
}

ExprPtr ExpressionParser::tuple(bool with_conditional, std::string_view end_name, bool in_parentheses) {
  const std::uint32_t at = current().at;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (!tuple_ends(false) && (end_name.empty() || !is_name(end_name))) {
    items.push_back(with_conditional ? expression() : logical_or());
    if (!skip_op(",")) break;
    is_tuple = true;
  }
  if (items.empty() && !in_parentheses) unexpected("an expression");
  if (!is_tuple && !items.empty()) return std::move(items.front());
  const std::uint32_t below = height(items);
  return make(at, ListLiteral{std::move(items), true}, below);
}

ExprPtr ExpressionParser::expression() {
  const Nesting nesting(*this);
  const std::uint32_t at = current().at;
  ExprPtr value = logical_or();
  while (skip_name("if")) {
    ExprPtr test = logical_or();
    ExprPtr otherwise = skip_name("else") ? expression() : nullptr;
    const std::uint32_t below = std::max({height(value), height(test), height(otherwise)});
    value = make(at, Conditional{std::move(test), std::move(value), std::move(otherwise)}, below);
  }
  return value;
}

ExprPtr ExpressionParser::logical_or() {
  ExprPtr left = logical_and();
  while (is_name("or")) left = logical(false, std::move(left), &ExpressionParser::logical_and);
  return left;
}
ExprPtr ExpressionParser::logical_and() {
  ExprPtr left = logical_not();
  while (is_name("and")) left = logical(true, std::move(left), &ExpressionParser::logical_not);
  return left;
}
ExprPtr ExpressionParser::logical(bool is_and, ExprPtr left, ExprPtr (ExpressionParser::*operand)()) {
  const std::uint32_t at = next().at;
  ExprPtr right = (this->*operand)();
  const std::uint32_t below = std::max(height(left), height(right));
  return make(at, Logical{is_and, std::move(left), std::move(right)}, below);
}
ExprPtr ExpressionParser::logical_not() {
  if (!is_name("not")) return comparison();
  const Nesting nesting(*this);
  const std::uint32_t at = next().at;
  ExprPtr operand = logical_not();
  const std::uint32_t below = height(operand);
  return make(at, Unary{Unary::Op::logical_not, std::move(operand)}, below);
}

std::optional<Compare::Op> ExpressionParser::comparison_operator() {
  static const std::map<std::string_view, Compare::Op> kOps = {
      {"==", Compare::Op::equal},  {"!=", Compare::Op::unequal},    {"<", Compare::Op::less},
      {">", Compare::Op::greater}, {"<=", Compare::Op::less_equal}, {">=", Compare::Op::greater_equal}};
  if (skip_name("in")) return Compare::Op::in;
  if (is_name("not") && look().type == Type::name && look().text == "in") {
    next();
    next();
    return Compare::Op::not_in;
  }
  if (current().type != Type::op) return std::nullopt;
  const auto found = kOps.find(current().text);
  if (found == kOps.end()) return std::nullopt;
  next();
  return found->second;
}
ExprPtr ExpressionParser::comparison() {
  const std::uint32_t at = current().at;
  Compare node;
  node.first = sum();
  std::uint32_t below = height(node.first);
  while (const auto op = comparison_operator()) {
    node.rest.emplace_back(*op, sum());
    below = std::max(below, height(node.rest.back().second));
  }
  if (node.rest.empty()) return std::move(node.first);
  return make(at, std::move(node), below);
}

ExprPtr ExpressionParser::binary(Binary::Op op, ExprPtr left, ExprPtr (ExpressionParser::*operand)()) {
  const std::uint32_t at = next().at;
  ExprPtr right = (this->*operand)();
  const std::uint32_t below = std::max(height(left), height(right));
  return make(at, Binary{op, std::move(left), std::move(right)}, below);
}
ExprPtr ExpressionParser::sum() {
  ExprPtr left = concatenation();
  while (is_op("+") || is_op("-")) {
    left = binary(is_op("+") ? Binary::Op::add : Binary::Op::subtract, std::move(left),
                  &ExpressionParser::concatenation);
  }
  return left;
}
ExprPtr ExpressionParser::concatenation() {
  const std::uint32_t at = current().at;
  std::vector<ExprPtr> parts;
  parts.push_back(product());
  while (skip_op("~")) parts.push_back(product());
  if (parts.size() == 1) return std::move(parts.front());
  const std::uint32_t below = height(parts);
  return make(at, Concat{std::move(parts)}, below);
}
ExprPtr ExpressionParser::product() {
  ExprPtr left = power();
  while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
    const Binary::Op op = is_op("*")    ? Binary::Op::multiply
                          : is_op("/")  ? Binary::Op::divide
                          : is_op("//") ? Binary::Op::floor_divide
                                        : Binary::Op::modulo;
    left = binary(op, std::move(left), &ExpressionParser::power);
  }
  return left;
}
ExprPtr ExpressionParser::power() {
  ExprPtr left = unary();
  while (is_op("**")) left = binary(Binary::Op::power, std::move(left), &ExpressionParser::unary);
  return left;
}
ExprPtr ExpressionParser::unary() {
  return filtered(unfiltered());
}
ExprPtr ExpressionParser::unfiltered() {
  if (!is_op("-") && !is_op("+")) return postfix(primary());
  const Nesting nesting(*this);
  const Unary::Op op = is_op("-") ? Unary::Op::negate : Unary::Op::plus;
  const std::uint32_t at = next().at;
  ExprPtr operand = unfiltered();
  const std::uint32_t below = height(operand);
  return postfix(make(at, Unary{op, std::move(operand)}, below));
}

ExprPtr ExpressionParser::primary() {
  const Token& token = current();
  switch (token.type) {
    case Type::name: next(); return name(token);
    case Type::string: return strings();
    case Type::number: next(); return make(token.at, Literal{token.value});
    case Type::op: break;
    default: unexpected("an expression");
  }
  if (skip_op("(")) {
    const Nesting nesting(*this);
    ExprPtr inner = tuple(true, {}, true);
    expect_op(")");
    return inner;
  }
  if (is_op("[")) return list();
  if (is_op("{")) return dict();
  unexpected("an expression");
}

ExprPtr ExpressionParser::name(const Token& token) {
  const std::string_view text = token.text;
  if (text == "true" || text == "True") return make(token.at, Literal{Value::boolean(true)});
  if (text == "false" || text == "False") return make(token.at, Literal{Value::boolean(false)});
  if (text == "none" || text == "None") return make(token.at, Literal{Value()});
  const Name name = intern(text);
  for (MacroDefinition* macro : macros_) {
    macro->uses_caller = macro->uses_caller || name == Program::kCaller;
    macro->uses_varargs = macro->uses_varargs || name == Program::kVarargs;
    macro->uses_kwargs = macro->uses_kwargs || name == Program::kKwargs;
  }
  return make(token.at, Variable{name});
}

ExprPtr ExpressionParser::strings() {
  const Token& first = next();
  if (current().type != Type::string) return make(first.at, Literal{first.value});
  Text text = *first.value.as_text();
  while (current().type == Type::string) text += *next().value.as_text();
  return make(first.at, Literal{Value::text(std::move(text))});
}

ExprPtr ExpressionParser::list() {
  const std::uint32_t at = next().at;
  std::vector<ExprPtr> items;
  while (!is_op("]")) {
    if (!items.empty()) expect_op(",");
    if (is_op("]")) break;
    items.push_back(expression());
  }
  expect_op("]");
  const std::uint32_t below = height(items);
  return make(at, ListLiteral{std::move(items), false}, below);
}

ExprPtr ExpressionParser::dict() {
  const std::uint32_t at = next().at;
  DictLiteral node;
  std::uint32_t below = 0;
  while (!is_op("}")) {
    if (!node.entries.empty()) expect_op(",");
    if (is_op("}")) break;
    ExprPtr key = expression();
    expect_op(":");
    ExprPtr value = expression();
    below = std::max({below, height(key), height(value)});
    node.entries.emplace_back(std::move(key), std::move(value));
  }
  expect_op("}");
  return make(at, std::move(node), below);
}

ExprPtr ExpressionParser::postfix(ExprPtr expr) {
  while (true) {
    if (is_op(".")) {
      expr = attribute(std::move(expr));
    } else if (is_op("[")) {
      expr = subscript(std::move(expr));
    } else if (is_op("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::attribute(ExprPtr object) {
  const std::uint32_t at = next().at;
  const std::uint32_t below = height(object);
  const Token& token = current();
  Int index = 0;
  if (token.type == Type::number && token.value.get_int(index)) {
    next();
    ExprPtr key = make(token.at, Literal{token.value});
    return make(at, Subscript{std::move(object), std::move(key)}, below);
  }
  return make(at, Attribute{std::move(object), std::string(expect(Type::name, "a name or a number").text)},
              below);
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  const std::uint32_t at = next().at;
  std::vector<ExprPtr> keys;
  while (!is_op("]")) {
    if (!keys.empty()) expect_op(",");
    keys.push_back(subscript_key());
  }
  expect_op("]");
  if (keys.empty()) fault(current(), "expected a key");
  const std::uint32_t below = std::max(height(object), height(keys));
  ExprPtr key =
      keys.size() == 1 ? std::move(keys.front()) : make(at, ListLiteral{std::move(keys), true}, below);
  return make(at, Subscript{std::move(object), std::move(key)}, std::max(below, height(key)));
}

ExprPtr ExpressionParser::subscript_key() {
  const std::uint32_t at = current().at;
  ExprPtr start = is_op(":") ? nullptr : expression();
  if (!skip_op(":")) return start;
  const auto part = [&]() -> ExprPtr {
    return is_op(":") || is_op("]") || is_op(",") ? nullptr : expression();
  };
  ExprPtr stop = part();
  ExprPtr step = skip_op(":") ? part() : nullptr;
  const std::uint32_t below = std::max({height(start), height(stop), height(step)});
  return make(at, Slice{std::move(start), std::move(stop), std::move(step)}, below);
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  const std::uint32_t at = current().at;
  CallArguments arguments = call_arguments();
  const std::uint32_t below = std::max(height(callee), height(arguments));
  return make(at, Call{std::move(callee), std::move(arguments)}, below);
}

CallArguments ExpressionParser::call_arguments() {
  CallArguments result;
  const Token& begin = current();
  expect_op("(");
  while (!is_op(")")) {
    const bool any =
        !result.positional.empty() || !result.named.empty() || result.spread || result.spread_named;
    if (any) expect_op(",");
    if (is_op(")")) break;
    if (skip_op("*")) {
      if (result.spread || result.spread_named) fault(begin, "the arguments of the call make no sense");
      result.spread = expression();
    } else if (skip_op("**")) {
      if (result.spread_named) fault(begin, "the arguments of the call make no sense");
      result.spread_named = expression();
    } else if (current().type == Type::name && look().type == Type::op && look().text == "=") {
      if (result.spread_named) fault(begin, "the arguments of the call make no sense");
      std::string name(next().text);
      next();
      result.named.emplace_back(std::move(name), expression());
    } else {
      if (!result.named.empty() || result.spread || result.spread_named) {
        fault(current(), "a positional argument follows others");
      }
      result.positional.push_back(expression());
    }
  }
  expect_op(")");
  return result;
}

// Filters and tests.

ExprPtr ExpressionParser::filtered(ExprPtr expr) {
  while (true) {
    if (is_op("|")) {
      expr = filter_chain(std::move(expr));
    } else if (is_name("is")) {
      expr = test(std::move(expr));
    } else if (is_op("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

std::string ExpressionParser::dotted_name(std::string_view what) {
  std::string name(expect(Type::name, what).text);
  while (skip_op(".")) name.append(".").append(expect(Type::name, what).text);
  return name;
}

ExprPtr ExpressionParser::one_filter(ExprPtr input) {
  const std::uint32_t at = current().at;
  FilterCall node;
  node.name = dotted_name("the name of a filter");
  if (is_op("(")) node.arguments = call_arguments();
  const std::uint32_t below = std::max(height(input), height(node.arguments));
  node.input = std::move(input);
  return make(at, std::move(node), below);
}
ExprPtr ExpressionParser::filter_chain(ExprPtr input) {
  while (skip_op("|")) input = one_filter(std::move(input));
  return input;
}

bool ExpressionParser::begins_test_argument() const {
  switch (current().type) {
    case Type::name: return !is_name("else") && !is_name("or") && !is_name("and");
    case Type::string:
    case Type::number: return true;
    default: return is_op("(") || is_op("[") || is_op("{");
  }
}

ExprPtr ExpressionParser::test(ExprPtr input) {
  const std::uint32_t at = next().at;
  const bool negated = skip_name("not");
  TestCall node;
  node.name = dotted_name("the name of a test");
  if (is_op("(")) {
    node.arguments = call_arguments();
  } else if (begins_test_argument()) {
    if (is_name("is")) fault(current(), "tests cannot be chained with 'is'");
    node.arguments.positional.push_back(postfix(primary()));
  }
  const std::uint32_t below = std::max(height(input), height(node.arguments));
  node.input = std::move(input);
  ExprPtr result = make(at, std::move(node), below);
  return negated ? make(at, Unary{Unary::Op::logical_not, std::move(result)}, below + 1) : std::move(result);
}

}  // namespace quipu::jinja
