#include "graph/graph.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace quipu {

const Shape& Value::shape() const {
  return graph_->info(*this).shape;
}
ElementType Value::type() const {
  return graph_->info(*this).type;
}
const std::string& Value::name() const {
  return graph_->info(*this).name;
}

Value Graph::add_value(ValueInfo info) {
  values_.push_back(std::move(info));
  return Value(this, static_cast<std::int32_t>(values_.size() - 1));
}

Value Graph::input(std::string name, ElementType type, Shape shape) {
  QUIPU_CHECK(type == ElementType::f32 || type == ElementType::i32);
  return add_value({ValueSource::input, std::move(name), type, std::move(shape), n_inputs_++, nullptr});
}

Value Graph::weight(const Weight& weight) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].weight == &weight) return Value(this, static_cast<std::int32_t>(i));
  }
  return add_value({ValueSource::weight, weight.name, weight.type, weight.shape, 0, &weight});
}

Value Graph::add_node(const Operation& operation, std::any params, std::vector<Value> inputs,
                      ElementType type, Shape shape) {
  for (const Value& input : inputs) QUIPU_CHECK(!input.valid() || &input.graph() == this);
  const std::size_t ordinal = nodes_.size();
  const Value output = add_value({ValueSource::node, fmt::format("{}#{}", operation.name, ordinal), type,
                                  std::move(shape), ordinal, nullptr});
  nodes_.push_back({&operation, std::move(params), std::move(inputs), output});
  return output;
}

Value Graph::label(Value value, std::string name) {
  values_[static_cast<std::size_t>(value.id())].name = std::move(name);
  return value;
}

void Graph::output(Value value) {
  QUIPU_CHECK(info(value).source == ValueSource::node);
  outputs_.push_back(value);
}

void require_shape(bool condition, const Operation& operation, std::string_view what, Value value) {
  if (condition) return;
  fail(ErrorCode::invalid_argument, "{}: {}; '{}' is {} {}", operation.name, what, value.name(),
       info(value.type()).name, to_string(value.shape()));
}

}  // namespace quipu
