// Evaluation of expressions.
#include <fmt/format.h>

#include "chat/jinja/access.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"

namespace quipu::jinja {

Value Interpreter::evaluate(const Expr& expr) {
  const Depth depth(*this);
  budget_.steps();
  at_ = expr.at;
  return std::visit([&](const auto& node) { return evaluate_node(node, expr.at); }, expr.node);
}

Value Interpreter::lookup(Name name) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->outside().get()) {
    if (const Value* value = scope->find(name)) return *value;
  }
  for (const auto& [key, value] : globals_) {
    if (key == name) return value;
  }
  return Value::undefined(fmt::format("'{}' is undefined", program_.names[name].substr(0, 100)));
}

Value Interpreter::evaluate_node(const Literal& node, std::uint32_t) {
  return node.value;
}

Value Interpreter::evaluate_node(const Variable& node, std::uint32_t) {
  return lookup(node.name);
}

Value Interpreter::evaluate_node(const ListLiteral& node, std::uint32_t) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExprPtr& item : node.items) items.push_back(evaluate(*item));
  return make_sequence(budget_, std::move(items), node.tuple ? Sequence::Type::tuple : Sequence::Type::list);
}

Value Interpreter::evaluate_node(const DictLiteral& node, std::uint32_t at) {
  Dict dict;
  for (const auto& [key_expr, value_expr] : node.entries) {
    Value key = evaluate(*key_expr);
    Value value = evaluate(*value_expr);
    at_ = at;
    require_hashable(key);
    dict.set(budget_, std::move(key), std::move(value));
  }
  return make_dict(std::move(dict));
}

Value Interpreter::evaluate_node(const Unary& node, std::uint32_t at) {
  const Value operand = evaluate(*node.operand);
  at_ = at;
  switch (node.op) {
    case Unary::Op::negate: return negative(operand);
    case Unary::Op::plus: return positive(operand);
    case Unary::Op::logical_not: break;
  }
  return Value::boolean(!truthy(operand));
}

Value Interpreter::evaluate_node(const Binary& node, std::uint32_t at) {
  const Value left = evaluate(*node.left);
  const Value right = evaluate(*node.right);
  at_ = at;
  return binary(*this, node.op, left, right);
}

Value Interpreter::evaluate_node(const Logical& node, std::uint32_t) {
  Value left = evaluate(*node.left);
  return truthy(left) == node.is_and ? evaluate(*node.right) : left;
}

bool Interpreter::compare_once(Compare::Op op, const Value& left, const Value& right) {
  switch (op) {
    case Compare::Op::equal: return equal(budget_, left, right);
    case Compare::Op::unequal: return !equal(budget_, left, right);
    case Compare::Op::in: return contains(*this, right, left);
    case Compare::Op::not_in: return !contains(*this, right, left);
    case Compare::Op::less: return compare(budget_, left, right, "<") == -1;
    case Compare::Op::greater: return compare(budget_, left, right, ">") == 1;
    case Compare::Op::less_equal: return compare(budget_, left, right, "<=") <= 0;
    case Compare::Op::greater_equal: break;
  }
  const int order = compare(budget_, left, right, ">=");
  return order == 0 || order == 1;
}

/// a < b < c is a < b and b < c.
Value Interpreter::evaluate_node(const Compare& node, std::uint32_t at) {
  Value left = evaluate(*node.first);
  for (const auto& [op, expr] : node.rest) {
    Value right = evaluate(*expr);
    at_ = at;
    if (!compare_once(op, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_node(const Concat& node, std::uint32_t at) {
  Text text;
  for (const ExprPtr& part : node.parts) {
    const Value value = evaluate(*part);
    at_ = at;
    append_str(*this, text, value);
  }
  return Value::text(std::move(text));
}

Value Interpreter::evaluate_node(const Conditional& node, std::uint32_t) {
  if (truthy(evaluate(*node.test))) return evaluate(*node.yes);
  if (node.no) return evaluate(*node.no);
  return Value::undefined("the inline if-expression evaluated to false and no else section was defined.");
}

Value Interpreter::evaluate_node(const Attribute& node, std::uint32_t at) {
  const Value object = evaluate(*node.object);
  at_ = at;
  return attribute(*this, object, node.name);
}

Value Interpreter::evaluate_node(const Subscript& node, std::uint32_t at) {
  const Value object = evaluate(*node.object);
  const auto* slice_key = std::get_if<Slice>(&node.key->node);
  if (slice_key == nullptr) {
    const Value key = evaluate(*node.key);
    at_ = at;
    return subscript(*this, object, key);
  }
  const auto part = [&](const ExprPtr& expr) { return expr ? evaluate(*expr) : Value(); };
  const Value start = part(slice_key->start), stop = part(slice_key->stop), step = part(slice_key->step);
  at_ = at;
  return slice(*this, object, start, stop, step);
}

Value Interpreter::evaluate_node(const Slice&, std::uint32_t) {
  fail(ErrorCode::invalid_argument, "slices can not be part of other keys");
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments result;
  for (const ExprPtr& argument : arguments.positional) result.positional.push_back(evaluate(*argument));
  for (const auto& [name, expr] : arguments.named) result.named.emplace_back(name, evaluate(*expr));
  if (arguments.spread) {
    const Elements more(budget_, evaluate(*arguments.spread));
    for (Value& value : more.all(budget_)) result.positional.push_back(std::move(value));
  }
  if (arguments.spread_named) {
    const Value more = evaluate(*arguments.spread_named);
    const Dict* dict = more.as_dict();
    if (dict == nullptr) fail(ErrorCode::invalid_argument, "argument after ** must be a mapping");
    for (const auto& [key, value] : dict->entries()) {
      if (key.as_text() == nullptr) fail(ErrorCode::invalid_argument, "keywords must be strings");
      result.named.emplace_back(bytes_of(*key.as_text()), value);
    }
  }
  return result;
}

Value Interpreter::evaluate_node(const Call& node, std::uint32_t at) {
  const Value callee = evaluate(*node.callee);
  Arguments arguments = evaluate_arguments(node.arguments);
  at_ = at;
  return call(callee, arguments);
}

Value Interpreter::evaluate_node(const FilterCall& node, std::uint32_t at) {
  const Value input = node.input ? evaluate(*node.input) : *block_input_;
  Arguments arguments = evaluate_arguments(node.arguments);
  at_ = at;
  return call_filter(node.name, input, arguments);
}

Value Interpreter::evaluate_node(const TestCall& node, std::uint32_t at) {
  const Value input = evaluate(*node.input);
  Arguments arguments = evaluate_arguments(node.arguments);
  at_ = at;
  return Value::boolean(call_test(node.name, input, arguments));
}

}  // namespace quipu::jinja
