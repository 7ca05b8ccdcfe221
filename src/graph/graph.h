// A computation as a flat list of nodes in topological order. Building a node infers and checks its shape
// there and then; operations live in graph/ops, one file per family, and the graph knows none of them.
#pragma once

#include <any>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/shape.h"
#include "graph/storage.h"
#include "quant/element_type.h"

namespace quipu {

class Graph;

/// The kind of a node. Each operation is one constant, defined beside its builder function; backends find
/// their kernels by its name.
struct Operation {
  std::string_view name;
};

/// A handle to one tensor of a graph; valid as long as the graph.
class Value {
 public:
  Value() = default;

  bool valid() const { return graph_ != nullptr; }
  Graph& graph() const { return *graph_; }
  std::int32_t id() const { return id_; }
  const Shape& shape() const;
  ElementType type() const;
  const std::string& name() const;
  bool operator==(const Value&) const = default;

 private:
  friend class Graph;
  Value(Graph* graph, std::int32_t id) : graph_(graph), id_(id) {}

  Graph* graph_ = nullptr;
  std::int32_t id_ = -1;
};

/// Where a value comes from.
enum class ValueSource : std::uint8_t { input, weight, node };

struct ValueInfo {
  ValueSource source;
  std::string name;
  ElementType type;  ///< f32 or i32 for inputs and nodes; the weight's own for weights
  Shape shape;
  std::size_t ordinal;   ///< input: its number among the inputs; node: its number among the nodes
  const Weight* weight;  ///< null unless source == weight
};

/// An operation applied: inputs, parameters (a struct of the operation's own), one output.
struct Node {
  const Operation* operation;
  std::any params;
  std::vector<Value> inputs;  ///< optional inputs that are absent are invalid values
  Value output;

  template <typename Params>
  const Params& as() const {
    return std::any_cast<const Params&>(params);
  }
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Data that each run brings along (f32 or i32).
  Value input(std::string name, ElementType type, Shape shape);
  /// A weight; it must outlive the graph. Naming one twice gives the same value.
  Value weight(const Weight& weight);
  /// For operation builders: appends a node whose output has the given type and shape.
  Value add_node(const Operation& operation, std::any params, std::vector<Value> inputs, ElementType type,
                 Shape shape);

  /// Names a node's output ("attn_norm-0"); errors and callbacks use it.
  Value label(Value value, std::string name);
  /// Marks a node's output as a result that each run writes where the caller wants it.
  void output(Value value);

  const ValueInfo& info(Value value) const { return values_[static_cast<std::size_t>(value.id())]; }
  std::size_t n_values() const { return values_.size(); }
  std::size_t n_inputs() const { return n_inputs_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& outputs() const { return outputs_; }

 private:
  Value add_value(ValueInfo info);

  std::vector<ValueInfo> values_;
  std::vector<Node> nodes_;
  std::vector<Value> outputs_;
  std::size_t n_inputs_ = 0;
};

/// For operation builders: Error(invalid_argument) "OPERATION: WHAT; NAME is SHAPE" if the condition does not
/// hold.
void require_shape(bool condition, const Operation& operation, std::string_view what, Value value);

}  // namespace quipu
