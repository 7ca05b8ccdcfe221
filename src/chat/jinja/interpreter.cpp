// Statements, loops and macros; expressions are in expressions.cpp.
#include "chat/jinja/interpreter.h"

#include <algorithm>

#include "chat/jinja/builtins.h"
#include "chat/jinja/print.h"

namespace quipu::jinja {

namespace {

/// Puts something back at the end of the scope.
template <typename T>
class Restore {
 public:
  Restore(T& variable, T value) : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~Restore() { variable_ = std::move(before_); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& variable_;
  T before_;
};

/// A loop that is over lets go of what may refer to it.
class LoopEnd {
 public:
  explicit LoopEnd(Loop& loop) : loop_(loop) {}
  ~LoopEnd() {
    loop_.active = false;
    loop_.last_changed.reset();
    loop_.outside.reset();
  }
  LoopEnd(const LoopEnd&) = delete;
  LoopEnd& operator=(const LoopEnd&) = delete;

 private:
  Loop& loop_;
};

}  // namespace

const Value* Scope::find(Name name) const {
  for (const auto& [key, value] : variables_) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Scope::set(Name name, Value value) {
  for (auto& [key, old] : variables_) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  variables_.emplace_back(name, std::move(value));
}

Interpreter::Depth::Depth(Interpreter& vm) : vm_(vm) {
  if (vm.depth_ >= vm.budget_.limits().depth) {
    fail(ErrorCode::invalid_argument, "the template goes too deep (over {} evaluations inside each other)",
         vm.budget_.limits().depth);
  }
  ++vm.depth_;
}

Interpreter::Interpreter(const Program& program, const Variables& variables, const Clock& clock,
                         Budget& budget)
    : program_(program), clock_(clock), budget_(budget), scope_(std::make_shared<Scope>(nullptr)) {
  for (Name name = 0; name < program.names.size(); ++name) {
    const auto given = std::find_if(variables.begin(), variables.end(), [&](const auto& variable) {
      return variable.first == program.names[name];
    });
    if (given != variables.end()) {
      globals_.emplace_back(name, given->second);
    } else if (std::optional<Value> function = global_function(program.names[name])) {
      globals_.emplace_back(name, *std::move(function));
    }
  }
}

Text Interpreter::run() {
  Text text;
  const Restore<Text*> output(out_, &text);
  run_body(program_.body);
  return text;
}

Value Interpreter::text(Text text, bool safe) {
  budget_.text(text.size());
  return Value::text(std::move(text), safe);
}

Namespace& Interpreter::new_namespace() {
  budget_.bytes(sizeof(Namespace) + 64);
  return *namespaces_.emplace_back(std::make_unique<Namespace>());
}

Value Interpreter::new_macro(std::shared_ptr<const MacroDefinition> definition) {
  budget_.bytes(sizeof(Macro) + sizeof(Scope) + 512);  // it keeps its scope
  const auto& macro = macros_.emplace_back(std::make_unique<Macro>(std::move(definition), scope_));
  return Value::Data(static_cast<const Macro*>(macro.get()));
}

void Interpreter::write(TextView text) {
  budget_.text(text.size());
  out_->append(text);
}

Interpreter::Flow Interpreter::run_body(const Body& body) {
  for (const Statement& statement : body) {
    if (const Flow flow = run_statement(statement); flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::run_in_scope(const Body& body, std::shared_ptr<Scope> scope) {
  const Restore<std::shared_ptr<Scope>> inside(scope_, std::move(scope));
  return run_body(body);
}

Text Interpreter::captured(const Body& body, std::shared_ptr<Scope> scope) {
  Text text;
  const Restore<Text*> output(out_, &text);
  run_in_scope(body, std::move(scope));
  return text;
}

Interpreter::Flow Interpreter::run_statement(const Statement& statement) {
  const Depth depth(*this);
  budget_.steps();
  at_ = statement.at;
  return std::visit([&](const auto& node) { return execute(node); }, statement.node);
}

Interpreter::Flow Interpreter::execute(const Literal& data) {
  write(*data.value.as_text());
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Output& node) {
  const Value value = evaluate(*node.expression);
  at_ = node.expression->at;
  if (const Text* text = value.as_text()) {
    write(*text);
  } else {
    append_str(*this, *out_, value);
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const If& node) {
  for (const If::Branch& branch : node.branches) {
    if (!branch.test || truthy(evaluate(*branch.test))) return run_body(*branch.body);
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Set& node) {
  const Value value = evaluate(*node.value);
  at_ = node.target.at;
  assign(node.target, value);
  return Flow::next;
}

Value Interpreter::apply_filters(const Expr& filters, const Value& input) {
  const Restore<const Value*> content(block_input_, &input);
  return evaluate(filters);
}

Interpreter::Flow Interpreter::execute(const SetBlock& node) {
  Value value = text(captured(*node.body, std::make_shared<Scope>(scope_)));
  if (node.filter) value = apply_filters(*node.filter, value);
  at_ = node.target.at;
  assign(node.target, value);
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const FilterBlock& node) {
  const Value content = text(captured(*node.body, std::make_shared<Scope>(scope_)));
  append_str(*this, *out_, apply_filters(*node.filter, content));
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const With& node) {
  const auto scope = std::make_shared<Scope>(scope_);
  std::vector<Value> values;
  for (const auto& [target, expression] : node.variables) values.push_back(evaluate(*expression));
  const Restore<std::shared_ptr<Scope>> inside(scope_, scope);
  for (std::size_t i = 0; i < values.size(); ++i) assign(node.variables[i].first, values[i]);
  return run_body(*node.body);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.attribute) {
    const Value object = lookup(target.name);
    Namespace* const* found = object.get_if<Namespace*>();
    if (found == nullptr) {
      fail(ErrorCode::invalid_argument, "cannot assign attribute on non-namespace object");
    }
    (*found)->attributes.set(budget_, Value::text(*target.attribute), value);
    return;
  }
  if (!target.is_tuple) {
    budget_.steps();
    scope_->set(target.name, value);
    return;
  }
  if (!Elements::possible(value)) {
    fail(ErrorCode::invalid_argument, "cannot unpack non-iterable {} object", type_name(value));
  }
  const Elements elements(budget_, value);
  const std::size_t wanted = target.parts.size();
  if (elements.size() < wanted) {
    fail(ErrorCode::invalid_argument, "not enough values to unpack (expected {}, got {})", wanted,
         elements.size());
  }
  if (elements.size() > wanted) {
    fail(ErrorCode::invalid_argument, "too many values to unpack (expected {})", wanted);
  }
  for (std::size_t i = 0; i < wanted; ++i) assign(target.parts[i], elements[i]);
}

Interpreter::Flow Interpreter::execute(const For& node) {
  const Value iterable = evaluate(*node.iterable);
  at_ = node.iterable->at;
  return run_loop(node, iterable, 0);
}

/// The elements that pass the loop's `if`.
Value Interpreter::filtered(const For& node, const Value& iterable) {
  const Elements all(budget_, iterable);
  std::vector<Value> passed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Restore<std::shared_ptr<Scope>> inside(scope_, std::make_shared<Scope>(scope_));
    const Value element = all[i];
    assign(node.target, element);
    if (truthy(evaluate(*node.test))) passed.push_back(element);
  }
  return make_sequence(budget_, std::move(passed));
}

Interpreter::Flow Interpreter::run_loop(const For& node, const Value& iterable, std::size_t recursion) {
  const Value source = node.test ? filtered(node, iterable) : iterable;
  const auto loop = std::make_shared<Loop>();
  loop->elements = Elements(budget_, source);
  loop->recursion = recursion;
  loop->depth_of_values = source.depth() + 1;
  loop->recursive = node.recursive ? &node : nullptr;
  loop->outside = scope_;
  const LoopEnd end(*loop);
  for (; loop->index < loop->elements.size(); ++loop->index) {
    budget_.steps();
    const auto scope = std::make_shared<Scope>(scope_);
    scope->set(Program::kLoop, Value::Data(loop));
    const Restore<std::shared_ptr<Scope>> inside(scope_, scope);
    assign(node.target, loop->elements[loop->index]);
    if (run_body(*node.body) == Flow::leave_loop) return Flow::next;
  }
  if (loop->elements.size() == 0 && node.otherwise) {
    return run_in_scope(*node.otherwise, std::make_shared<Scope>(scope_));
  }
  return Flow::next;
}

Value Interpreter::call_loop(Loop& loop, Arguments& arguments) {
  if (!loop.active || loop.recursive == nullptr) {
    fail(ErrorCode::invalid_argument, "the loop must have the 'recursive' marker to be called recursively");
  }
  Parameters parameters("loop", arguments);
  const Value iterable = parameters.required("iterable");
  parameters.end();
  Text text;
  const Restore<Text*> output(out_, &text);
  const Restore<std::shared_ptr<Scope>> outside(scope_, loop.outside);
  run_loop(*loop.recursive, iterable, loop.recursion + 1);
  return this->text(std::move(text));
}

Interpreter::Flow Interpreter::execute(const MacroStatement& node) {
  scope_->set(node.name, new_macro(node.definition));
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const CallBlock& node) {
  const auto& expr = std::get<Call>(node.call->node);
  const Value callee = evaluate(*expr.callee);
  Arguments arguments = evaluate_arguments(expr.arguments);
  arguments.named.emplace_back("caller", new_macro(node.caller));
  at_ = node.call->at;
  append_str(*this, *out_, call(callee, arguments));
  return Flow::next;
}

void Interpreter::bind_parameters(const Macro& macro, Arguments& arguments, Scope& scope) {
  const MacroDefinition& definition = *macro.definition;
  const auto take_named = [&](std::string_view name) -> std::optional<Value> {
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& argument) { return argument.first == name; });
    if (found == arguments.named.end()) return std::nullopt;
    std::optional<Value> value = std::move(found->second);
    arguments.named.erase(found);
    return value;
  };
  bool has_caller = false;
  for (std::size_t i = 0; i < definition.parameters.size(); ++i) {
    const MacroDefinition::Parameter& parameter = definition.parameters[i];
    has_caller = has_caller || parameter.name == Program::kCaller;
    if (i < arguments.positional.size()) {
      scope.set(parameter.name, arguments.positional[i]);
    } else if (std::optional<Value> given = take_named(definition.parameter_names[i])) {
      scope.set(parameter.name, std::move(*given));
    } else if (parameter.usual) {
      scope.set(parameter.name, evaluate(*parameter.usual));
    } else {
      scope.set(parameter.name, Value::undefined(fmt::format("parameter '{}' was not provided",
                                                             definition.parameter_names[i])));
    }
  }
  if (definition.uses_caller && !has_caller) {
    scope.set(Program::kCaller, take_named("caller").value_or(Value::undefined("No caller defined")));
  }
  if (definition.uses_kwargs) {
    Dict kwargs;
    for (auto& [name, value] : arguments.named) kwargs.set(budget_, Value::text(name), std::move(value));
    scope.set(Program::kKwargs, make_dict(std::move(kwargs)));
  } else if (!arguments.named.empty()) {
    fail(ErrorCode::invalid_argument, "macro '{}' takes no keyword argument '{}'", definition.name,
         arguments.named.front().first);
  }
  const std::size_t n = definition.parameters.size();
  if (definition.uses_varargs) {
    std::vector<Value> rest;
    for (std::size_t i = n; i < arguments.positional.size(); ++i) rest.push_back(arguments.positional[i]);
    scope.set(Program::kVarargs, make_sequence(budget_, std::move(rest), Sequence::Type::tuple));
  } else if (arguments.positional.size() > n) {
    fail(ErrorCode::invalid_argument, "macro '{}' takes not more than {} argument(s)", definition.name, n);
  }
}

Value Interpreter::call_macro(const Macro& macro, Arguments& arguments) {
  const Depth depth(*this);
  budget_.steps();
  const auto scope = std::make_shared<Scope>(macro.scope);
  const Restore<std::shared_ptr<Scope>> inside(scope_, scope);
  bind_parameters(macro, arguments, *scope);
  return text(captured(*macro.definition->body, scope));
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  const Depth depth(*this);
  require_defined(callee);
  if (const auto* function = callee.get_if<std::shared_ptr<const Callable>>()) {
    return (*function)->call(*this, arguments);
  }
  if (const Macro* const* macro = callee.get_if<const Macro*>()) return call_macro(**macro, arguments);
  if (const auto* loop = callee.get_if<std::shared_ptr<Loop>>()) return call_loop(**loop, arguments);
  fail(ErrorCode::invalid_argument, "'{}' object is not callable", type_name(callee));
}

Value Interpreter::call_filter(std::string_view name, const Value& input, Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (filter == nullptr) fail(ErrorCode::invalid_argument, "No filter named '{}'.", name.substr(0, 40));
  budget_.steps();
  return filter(*this, input, arguments);
}

bool Interpreter::call_test(std::string_view name, const Value& input, Arguments& arguments) {
  const Test test = find_test(name);
  if (test == nullptr) fail(ErrorCode::invalid_argument, "No test named '{}'.", name.substr(0, 40));
  budget_.steps();
  return test(*this, input, arguments);
}

}  // namespace quipu::jinja
