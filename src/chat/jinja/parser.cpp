// The grammar of Jinja 3.1 by recursive descent, statements first. How deep a template may nest is limited,
// since neither parsing nor evaluating may run out of stack.
#include "chat/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "chat/jinja/token.h"

namespace quipu::jinja {

namespace {

constexpr std::uint32_t kMaxNesting = 100;  // of tags and brackets while parsing
constexpr std::uint32_t kMaxHeight = 300;   // of an expression's tree: chains grow without nesting

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {
    for (const char* name : {"loop", "caller", "varargs", "kwargs"}) intern(name);
  }

  Program program() {
    program_.body = std::move(*statements({}));
    return std::move(program_);
  }

 private:
  using Type = Token::Type;

  // Tokens.

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

  [[noreturn]] static void fault(const Token& token, std::string message) {
    throw SyntaxError{token.at, std::move(message)};
  }
  std::string got() const {
    switch (current().type) {
      case Type::data: return "text";
      case Type::variable_end: return "the end of the print statement";
      case Type::block_end: return "the end of the tag";
      case Type::end: return "the end of the template";
      default: return fmt::format("'{}'", current().text.substr(0, 40));
    }
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

  /// Counts how deep we are.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) fault(parser_.current(), "the template is nested too deeply");
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  Name intern(std::string_view name) {
    const auto [it, is_new] = names_.emplace(name, static_cast<Name>(program_.names.size()));
    if (is_new) program_.names.emplace_back(name);
    return it->second;
  }

  // Statements.

  std::shared_ptr<Body> statements(const std::vector<std::string_view>& ends) {
    const Nesting nesting(*this);
    auto body = std::make_shared<Body>();
    while (true) {
      const Token& token = current();
      switch (token.type) {
        case Type::end:
          if (ends.empty()) return body;
          fault(token, fmt::format("the template ends before '{}'", fmt::join(ends, "' or '")));
        case Type::data:
          body->push_back({token.at, Literal{token.value}});
          next();
          break;
        case Type::variable_begin:
          next();
          body->push_back({token.at, Output{tuple()}});
          expect(Type::variable_end, "the end of the print statement");
          break;
        default:  // a block
          next();
          if (current().type == Type::name && std::ranges::count(ends, current().text) > 0) return body;
          statement(*body);
          expect(Type::block_end, "the end of the tag");
      }
    }
  }

  /// Behind the beginning of a tag with a body: the end of the tag, the body, and the word that ends it.
  std::shared_ptr<Body> block(const std::vector<std::string_view>& ends) {
    skip_op(":");
    expect(Type::block_end, "the end of the tag");
    return statements(ends);
  }
  std::shared_ptr<Body> whole_block(std::string_view end) {
    auto body = block({end});
    next();
    return body;
  }

  void statement(Body& body) {
    const Token& tag = expect(Type::name, "the name of a tag");
    using Parse = void (Parser::*)(std::uint32_t, Body&);
    static const std::map<std::string_view, Parse> kTags = {
        {"if", &Parser::if_tag},       {"for", &Parser::for_tag},     {"set", &Parser::set_tag},
        {"macro", &Parser::macro_tag}, {"call", &Parser::call_tag},   {"filter", &Parser::filter_tag},
        {"with", &Parser::with_tag},   {"block", &Parser::block_tag}, {"generation", &Parser::generation_tag},
        {"print", &Parser::print_tag}, {"break", &Parser::break_tag}, {"continue", &Parser::continue_tag},
    };
    const auto found = kTags.find(tag.text);
    if (found == kTags.end()) fault(tag, fmt::format("unknown tag '{}'", tag.text.substr(0, 40)));
    (this->*found->second)(tag.at, body);
  }

  void if_tag(std::uint32_t at, Body& body) {
    If node;
    while (true) {
      ExprPtr test = tuple(false);
      node.branches.push_back({std::move(test), block({"elif", "else", "endif"})});
      const Token& word = next();
      if (word.text == "elif") continue;
      if (word.text == "else") node.branches.push_back({nullptr, whole_block("endif")});
      break;
    }
    body.push_back({at, std::move(node)});
  }

  void for_tag(std::uint32_t at, Body& body) {
    For node;
    node.target = target_tuple(false, true);
    expect_name("in");
    node.iterable = tuple(false, "recursive");
    if (skip_name("if")) node.test = expression();
    node.recursive = skip_name("recursive");
    ++loops_;
    node.body = block({"endfor", "else"});
    --loops_;
    if (next().text == "else") node.otherwise = whole_block("endfor");
    body.push_back({at, std::move(node)});
  }

  void set_tag(std::uint32_t at, Body& body) {
    Target target = target_tuple(true, false);
    if (skip_op("=")) {
      body.push_back({at, Set{std::move(target), tuple()}});
      return;
    }
    ExprPtr filters = is_op("|") ? filter_chain(nullptr) : nullptr;
    auto content = whole_block("endset");
    body.push_back({at, SetBlock{std::move(target), std::move(filters), std::move(content)}});
  }

  void macro_tag(std::uint32_t at, Body& body) {
    const std::string_view name = plain_name();
    auto definition = std::make_shared<MacroDefinition>();
    definition->name = name;
    signature(*definition);
    macro_body(*definition, "endmacro");
    body.push_back({at, MacroStatement{intern(name), std::move(definition)}});
  }

  void call_tag(std::uint32_t at, Body& body) {
    auto caller = std::make_shared<MacroDefinition>();
    caller->name = "caller";
    if (is_op("(")) signature(*caller);
    const Token& begin = current();
    ExprPtr call = expression();
    if (!std::holds_alternative<Call>(call->node)) fault(begin, "expected a call");
    macro_body(*caller, "endcall");
    body.push_back({at, CallBlock{std::move(call), std::move(caller)}});
  }

  void filter_tag(std::uint32_t at, Body& body) {
    ExprPtr filter = filter_chain(one_filter(nullptr));
    body.push_back({at, FilterBlock{std::move(filter), whole_block("endfilter")}});
  }

  void with_tag(std::uint32_t at, Body& body) {
    With node;
    while (current().type != Type::block_end && !is_op(":")) {
      if (!node.variables.empty()) expect_op(",");
      Target target = target_tuple(false, false);
      expect_op("=");
      node.variables.emplace_back(std::move(target), expression());
    }
    node.body = whole_block("endwith");
    body.push_back({at, std::move(node)});
  }

  /// Without other templates a block is its content, in a scope of its own.
  void block_tag(std::uint32_t at, Body& body) {
    const std::string_view name = plain_name();
    skip_name("scoped");
    With node{{}, whole_block("endblock")};
    skip_name(name);
    body.push_back({at, std::move(node)});
  }

  /// Marks what the assistant said, for training; of no effect on the text.
  void generation_tag(std::uint32_t at, Body& body) {
    body.push_back({at, With{{}, whole_block("endgeneration")}});
  }

  void print_tag(std::uint32_t at, Body& body) {
    while (current().type != Type::block_end) {
      body.push_back({at, Output{expression()}});
      if (!skip_op(",")) break;
    }
  }

  void break_tag(std::uint32_t at, Body& body) {
    require_loop(at);
    body.push_back({at, Break{}});
  }
  void continue_tag(std::uint32_t at, Body& body) {
    require_loop(at);
    body.push_back({at, Continue{}});
  }
  void require_loop(std::uint32_t at) const {
    if (loops_ == 0) throw SyntaxError{at, "break or continue outside of a loop"};
  }

  void signature(MacroDefinition& definition) {
    expect_op("(");
    while (!is_op(")")) {
      if (!definition.parameters.empty()) expect_op(",");
      const Token& token = current();
      const std::string_view name = plain_name();
      ExprPtr usual = skip_op("=") ? expression() : nullptr;
      if (!usual && !definition.parameters.empty() && definition.parameters.back().usual) {
        fault(token, "a parameter without a default follows one with a default");
      }
      definition.parameter_names.emplace_back(name);
      definition.parameters.push_back({intern(name), std::move(usual)});
    }
    expect_op(")");
  }

  /// Notes which of the special variables are mentioned.
  void macro_body(MacroDefinition& definition, std::string_view end) {
    const std::size_t outer_loops = std::exchange(loops_, 0);
    macros_.push_back(&definition);
    definition.body = whole_block(end);
    macros_.pop_back();
    loops_ = outer_loops;
  }

  // Targets.

  static bool is_constant(std::string_view name) {
    return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
           name == "None";
  }
  std::string_view plain_name() {
    const Token& token = expect(Type::name, "a name");
    if (is_constant(token.text)) fault(token, fmt::format("cannot assign to '{}'", token.text));
    return token.text;
  }

  Target target(bool with_namespace) {
    const Nesting nesting(*this);
    const Token& token = current();
    Target result;
    result.at = token.at;
    if (skip_op("(")) {
      result = target_tuple(with_namespace, false);
      expect_op(")");
      return result;
    }
    result.name = intern(plain_name());
    if (with_namespace && skip_op("."))
      result.attribute = expect(Type::name, "the name of an attribute").text;
    return result;
  }

  bool tuple_ends(bool at_in) const {
    return current().type == Type::variable_end || current().type == Type::block_end || is_op(")") ||
           (at_in && is_name("in"));
  }

  Target target_tuple(bool with_namespace, bool until_in) {
    Target first = target(with_namespace);
    if (!is_op(",")) return first;
    Target result;
    result.at = first.at;
    result.is_tuple = true;
    result.parts.push_back(std::move(first));
    while (skip_op(",") && !tuple_ends(until_in) && !is_op("="))
      result.parts.push_back(target(with_namespace));
    return result;
  }

  // Expressions.

  template <typename Node>
  ExprPtr make(std::uint32_t at, Node node, std::uint32_t height_below = 0) {
    if (height_below >= kMaxHeight) throw SyntaxError{at, "the expression is too long or nested too deeply"};
    return std::make_unique<Expr>(Expr{at, height_below + 1, std::move(node)});
  }
  static std::uint32_t height(const ExprPtr& expr) { return expr ? expr->height : 0; }
  static std::uint32_t height(const std::vector<ExprPtr>& exprs) {
    std::uint32_t result = 0;
    for (const ExprPtr& expr : exprs) result = std::max(result, height(expr));
    return result;
  }
  static std::uint32_t height(const CallArguments& arguments) {
    std::uint32_t result =
        std::max({height(arguments.positional), height(arguments.spread), height(arguments.spread_named)});
    for (const auto& [name, value] : arguments.named) result = std::max(result, height(value));
    return result;
  }

  /// One expression, or several with commas between them.
  ExprPtr tuple(bool with_conditional = true, std::string_view end_name = {}, bool in_parentheses = false) {
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

  ExprPtr expression() {
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

  ExprPtr logical_or() {
    ExprPtr left = logical_and();
    while (is_name("or")) left = logical(false, std::move(left), &Parser::logical_and);
    return left;
  }
  ExprPtr logical_and() {
    ExprPtr left = logical_not();
    while (is_name("and")) left = logical(true, std::move(left), &Parser::logical_not);
    return left;
  }
  ExprPtr logical(bool is_and, ExprPtr left, ExprPtr (Parser::*operand)()) {
    const std::uint32_t at = next().at;
    ExprPtr right = (this->*operand)();
    const std::uint32_t below = std::max(height(left), height(right));
    return make(at, Logical{is_and, std::move(left), std::move(right)}, below);
  }
  ExprPtr logical_not() {
    if (!is_name("not")) return comparison();
    const Nesting nesting(*this);
    const std::uint32_t at = next().at;
    ExprPtr operand = logical_not();
    const std::uint32_t below = height(operand);
    return make(at, Unary{Unary::Op::logical_not, std::move(operand)}, below);
  }

  std::optional<Compare::Op> comparison_operator() {
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
  ExprPtr comparison() {
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

  ExprPtr binary(Binary::Op op, ExprPtr left, ExprPtr (Parser::*operand)()) {
    const std::uint32_t at = next().at;
    ExprPtr right = (this->*operand)();
    const std::uint32_t below = std::max(height(left), height(right));
    return make(at, Binary{op, std::move(left), std::move(right)}, below);
  }
  ExprPtr sum() {
    ExprPtr left = concatenation();
    while (is_op("+") || is_op("-")) {
      left = binary(is_op("+") ? Binary::Op::add : Binary::Op::subtract, std::move(left),
                    &Parser::concatenation);
    }
    return left;
  }
  ExprPtr concatenation() {
    const std::uint32_t at = current().at;
    std::vector<ExprPtr> parts;
    parts.push_back(product());
    while (skip_op("~")) parts.push_back(product());
    if (parts.size() == 1) return std::move(parts.front());
    const std::uint32_t below = height(parts);
    return make(at, Concat{std::move(parts)}, below);
  }
  ExprPtr product() {
    ExprPtr left = power();
    while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
      const Binary::Op op = is_op("*")    ? Binary::Op::multiply
                            : is_op("/")  ? Binary::Op::divide
                            : is_op("//") ? Binary::Op::floor_divide
                                          : Binary::Op::modulo;
      left = binary(op, std::move(left), &Parser::power);
    }
    return left;
  }
  ExprPtr power() {
    ExprPtr left = unary();
    while (is_op("**")) left = binary(Binary::Op::power, std::move(left), &Parser::unary);
    return left;
  }
  ExprPtr unary() { return filtered(unfiltered()); }
  ExprPtr unfiltered() {
    if (!is_op("-") && !is_op("+")) return postfix(primary());
    const Nesting nesting(*this);
    const Unary::Op op = is_op("-") ? Unary::Op::negate : Unary::Op::plus;
    const std::uint32_t at = next().at;
    ExprPtr operand = unfiltered();
    const std::uint32_t below = height(operand);
    return postfix(make(at, Unary{op, std::move(operand)}, below));
  }

  ExprPtr primary() {
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

  ExprPtr name(const Token& token) {
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

  /// Adjacent strings are one.
  ExprPtr strings() {
    const Token& first = next();
    if (current().type != Type::string) return make(first.at, Literal{first.value});
    Text text = *first.value.as_text();
    while (current().type == Type::string) text += *next().value.as_text();
    return make(first.at, Literal{Value::text(std::move(text))});
  }

  ExprPtr list() {
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

  ExprPtr dict() {
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

  ExprPtr postfix(ExprPtr expr) {
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

  ExprPtr attribute(ExprPtr object) {
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

  ExprPtr subscript(ExprPtr object) {
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

  ExprPtr subscript_key() {
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

  ExprPtr call(ExprPtr callee) {
    const std::uint32_t at = current().at;
    CallArguments arguments = call_arguments();
    const std::uint32_t below = std::max(height(callee), height(arguments));
    return make(at, Call{std::move(callee), std::move(arguments)}, below);
  }

  CallArguments call_arguments() {
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

  ExprPtr filtered(ExprPtr expr) {
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

  std::string dotted_name(std::string_view what) {
    std::string name(expect(Type::name, what).text);
    while (skip_op(".")) name.append(".").append(expect(Type::name, what).text);
    return name;
  }

  /// Of `| name(arguments)`, behind the bar.
  ExprPtr one_filter(ExprPtr input) {
    const std::uint32_t at = current().at;
    FilterCall node;
    node.name = dotted_name("the name of a filter");
    if (is_op("(")) node.arguments = call_arguments();
    const std::uint32_t below = std::max(height(input), height(node.arguments));
    node.input = std::move(input);
    return make(at, std::move(node), below);
  }
  ExprPtr filter_chain(ExprPtr input) {
    while (skip_op("|")) input = one_filter(std::move(input));
    return input;
  }

  bool begins_test_argument() const {
    switch (current().type) {
      case Type::name: return !is_name("else") && !is_name("or") && !is_name("and");
      case Type::string:
      case Type::number: return true;
      default: return is_op("(") || is_op("[") || is_op("{");
    }
  }

  ExprPtr test(ExprPtr input) {
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
    return negated ? make(at, Unary{Unary::Op::logical_not, std::move(result)}, below + 1)
                   : std::move(result);
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t nesting_ = 0;
  std::size_t loops_ = 0;
  std::vector<MacroDefinition*> macros_;  // that we are inside of
  std::map<std::string, Name, std::less<>> names_;
  Program program_;
};

}  // namespace

Program parse(std::string_view source) {
  return Parser(source).program();
}

}  // namespace quipu::jinja
