// Looking on while a model computes: every node of the computation with its inputs and its result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace quipu {

/// A tensor of a run, valid during the call that shows it.
struct TensorView {
  std::string_view name;                        ///< "l_out-3", "blk.3.ffn_down.weight", "result_output"
  std::string_view type;                        ///< "F32", "I32"; of a weight its own, "Q4_K"
  std::array<std::size_t, 4> dims{1, 1, 1, 1};  ///< outermost first; those past the rank are 1
  std::size_t rank = 0;
  bool is_weight = false;  ///< a tensor of the model's file; it comes without numbers
  /// The numbers, row-major, of whichever type they are.
  std::span<const float> floats;
  std::span<const std::int32_t> integers;
};

/// A node that has been computed. Matrix products have their input first, then their weight.
struct NodeView {
  std::string_view operation;  ///< "matmul", "attention"
  TensorView output;
  std::span<const TensorView> inputs;
};

/// Told of every node of a context's runs, in order, by the thread that called decode or encode. Runs take
/// longer then; their numbers stay the same, to the last bit. Must not use the context.
class Observer {
 public:
  virtual ~Observer() = default;

  /// Whether observe is to be called for this node, whose tensors have no numbers yet.
  virtual bool wants(const NodeView& node) {
    static_cast<void>(node);
    return true;
  }
  /// Returning false ends the run, as the abort callback does.
  virtual bool observe(const NodeView& node) = 0;
};

}  // namespace quipu
