// Statements of the grammar of Jinja 3.1, around the expressions of expression_parser.h.
#include "chat/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "chat/jinja/expression_parser.h"

namespace quipu::jinja {

namespace {

class Parser : private ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(source) {}

  Program program() {
    Program program;
    program.body = std::move(*statements({}));
    program.names = take_names();
    return program;
  }

 private:
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

  std::size_t loops_ = 0;  // that we are inside of
};

}  // namespace

Program parse(std::string_view source) {
  return Parser(source).program();
}

}  // namespace quipu::jinja
