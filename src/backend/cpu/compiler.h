// From a graph to a CpuPlan: each node's step maker emits steps over numbered buffers; the compiler groups
// them into phases and places the buffers.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/plan.h"
#include "backend/cpu/storage.h"
#include "graph/graph.h"

namespace quipu::cpu {

/// Tokens that attend together: neighbours in the batch that look at the same sequence.
struct QueryBlock {
  std::size_t first_token;
  std::size_t n_tokens;
};

/// Input rows of a matrix product.
struct ActivationRows {
  BufferId buffer;
  std::size_t stride;  ///< bytes from one row to the next
};

class Compiler {
 public:
  Compiler(const Graph& graph, const Extents& max_extents, Backing backing);

  std::unique_ptr<Plan> compile(unsigned max_threads);
  /// With a phase after each node in which it can be looked at.
  std::unique_ptr<Plan> compile_observed(unsigned max_threads);

  // For step makers.

  const KernelTable& kernels() const { return kernels_; }
  /// The buffer that holds a value (an input, or a node's output).
  BufferId buffer(Value value);
  /// A buffer of `rows` x `row_bytes` for the step maker's own use.
  BufferId create_buffer(Dim rows, std::size_t row_bytes);
  /// The same, as large as `rows` x `factor` rows.
  BufferId create_buffer(Dim rows, std::size_t factor, std::size_t row_bytes);
  /// Stands for memory outside the plan, by its address.
  BufferId token(const void* object);
  /// `value` in the form that a matrix product wants; made once for all products that share it.
  ActivationRows activation(Value value, ActivationFormat format);
  /// Blocks of the run's layout, filled in before the first phase of each run.
  std::shared_ptr<const std::vector<QueryBlock>> query_blocks(std::size_t layout);
  /// A view's buffer is that of what it shows.
  void alias(Value value, Value source);
  void emit(Step step);

 private:
  struct Buffer {
    BufferPlace::Kind kind;
    std::size_t index = 0;  // ordinal of input or output
    std::size_t bytes = 0;  // arena: at the reserved maximum
  };

  std::unique_ptr<Plan> finish(unsigned max_threads);
  void place_outputs();
  ObservedBuffer observed(Value value);
  void emit_observation(const Node& node);
  BufferId add_buffer(Buffer buffer);
  std::optional<std::vector<std::size_t>> joinable_chains(const Step& step) const;
  void place_buffers(CpuPlan::Parts& parts) const;

  const Graph& graph_;
  Extents max_extents_;
  Backing backing_;  // of the plan
  const KernelTable& kernels_;
  std::vector<Buffer> buffers_;
  std::vector<Phase> phases_;
  std::map<std::int32_t, BufferId> values_;
  std::map<const void*, BufferId> tokens_;
  std::map<std::pair<BufferId, ActivationFormat>, BufferId> activations_;
  std::map<std::size_t, std::shared_ptr<std::vector<QueryBlock>>> query_blocks_;
  std::vector<std::function<void(const Run&)>> prologue_;
  std::vector<Observation> observations_;
};

/// Rows that a step over `dim` works on.
std::function<std::size_t(const Run&)> units_of(Dim dim);
/// The storage of a matrix or vector weight; null for an absent (invalid) value.
const PackedMatrix* matrix_of(Value weight);
const float* vector_of(Value weight);

}  // namespace quipu::cpu
