// Runs a parsed template. One object for one run: it pays for every step from the run's budget, and owns what
// can change or outlive a scope (namespaces, macros).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/loop.h"
#include "chat/jinja/value.h"

namespace quipu::jinja {

/// Variables of one level; what is not found here is looked for outside.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> outside) : outside_(std::move(outside)) {}
  const std::shared_ptr<Scope>& outside() const { return outside_; }
  const Value* find(Name name) const;
  void set(Name name, Value value);

 private:
  std::shared_ptr<Scope> outside_;
  std::vector<std::pair<Name, Value>> variables_;
};

/// A macro, or the body of a call block, with the scope it was defined in.
class Macro {
 public:
  Macro(std::shared_ptr<const MacroDefinition> macro_definition, std::shared_ptr<Scope> where)
      : definition(std::move(macro_definition)), scope(std::move(where)) {}
  const std::shared_ptr<const MacroDefinition> definition;
  const std::shared_ptr<Scope> scope;
};

using Variables = std::vector<std::pair<std::string, Value>>;
/// The current time by a format of strftime.
using Clock = std::function<std::string(const std::string& format)>;

class Interpreter {
 public:
  /// All of these outlive the run.
  Interpreter(const Program& program, const Variables& variables, const Clock& clock, Budget& budget);

  /// The text of the template. After an error, at() is where it happened.
  Text run();
  std::uint32_t at() const { return at_; }

  // What filters, tests and functions use.
  Budget& budget() { return budget_; }
  const Clock& clock() const { return clock_; }
  Value call(const Value& callee, Arguments& arguments);
  Value call_filter(std::string_view name, const Value& input, Arguments& arguments);
  bool call_test(std::string_view name, const Value& input, Arguments& arguments);
  Namespace& new_namespace();
  Value text(Text text, bool safe = false);

  /// Counts evaluations inside each other; every recursion of the run holds one.
  class Depth {
   public:
    explicit Depth(Interpreter& vm);
    ~Depth() { --vm_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Interpreter& vm_;
  };

 private:
  enum class Flow { next, leave_loop, next_round };

  // Statements (interpreter.cpp).
  Flow run_body(const Body& body);
  Flow run_in_scope(const Body& body, std::shared_ptr<Scope> scope);
  Text captured(const Body& body, std::shared_ptr<Scope> scope);
  Flow run_statement(const Statement& statement);
  Flow execute(const Literal& data);
  Flow execute(const Output& node);
  Flow execute(const For& node);
  Flow execute(const If& node);
  Flow execute(const Set& node);
  Flow execute(const SetBlock& node);
  Flow execute(const MacroStatement& node);
  Flow execute(const CallBlock& node);
  Flow execute(const FilterBlock& node);
  Flow execute(const With& node);
  Flow execute(const Break&) { return Flow::leave_loop; }
  Flow execute(const Continue&) { return Flow::next_round; }
  Flow run_loop(const For& node, const Value& iterable, std::size_t recursion);
  Value filtered(const For& node, const Value& iterable);
  Value call_loop(Loop& loop, Arguments& arguments);
  Value call_macro(const Macro& macro, Arguments& arguments);
  void bind_parameters(const Macro& macro, Arguments& arguments, Scope& scope);
  Value new_macro(std::shared_ptr<const MacroDefinition> definition);
  void assign(const Target& target, const Value& value);
  void write(TextView text);

  // Expressions (expressions.cpp).
  Value evaluate(const Expr& expr);
  Value evaluate_node(const Literal& node, std::uint32_t at);
  Value evaluate_node(const Variable& node, std::uint32_t at);
  Value evaluate_node(const ListLiteral& node, std::uint32_t at);
  Value evaluate_node(const DictLiteral& node, std::uint32_t at);
  Value evaluate_node(const Unary& node, std::uint32_t at);
  Value evaluate_node(const Binary& node, std::uint32_t at);
  Value evaluate_node(const Logical& node, std::uint32_t at);
  Value evaluate_node(const Compare& node, std::uint32_t at);
  Value evaluate_node(const Concat& node, std::uint32_t at);
  Value evaluate_node(const Conditional& node, std::uint32_t at);
  Value evaluate_node(const Attribute& node, std::uint32_t at);
  Value evaluate_node(const Subscript& node, std::uint32_t at);
  Value evaluate_node(const Slice& node, std::uint32_t at);
  Value evaluate_node(const Call& node, std::uint32_t at);
  Value evaluate_node(const FilterCall& node, std::uint32_t at);
  Value evaluate_node(const TestCall& node, std::uint32_t at);
  bool compare_once(Compare::Op op, const Value& left, const Value& right);
  Arguments evaluate_arguments(const CallArguments& arguments);
  Value apply_filters(const Expr& filters, const Value& input);
  Value lookup(Name name) const;

  const Program& program_;
  const Clock& clock_;
  Budget& budget_;
  std::vector<std::pair<Name, Value>> globals_;
  std::shared_ptr<Scope> scope_;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::vector<std::unique_ptr<Macro>> macros_;
  Text* out_ = nullptr;
  const Value* block_input_ = nullptr;  // of the filters of a block
  std::uint32_t at_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace quipu::jinja
