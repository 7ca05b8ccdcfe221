// How each operation of the graph becomes steps on the CPU: one file per family, found by the operation's
// name.
#pragma once

#include "backend/cpu/compiler.h"
#include "graph/ops/elementwise.h"

namespace quipu::cpu {

/// Emits the steps of a node. Error(unsupported) names an operation that the CPU lacks.
void make_steps(const Node& node, Compiler& compiler);

void make_embed(const Node& node, Compiler& compiler);
void make_select_rows(const Node& node, Compiler& compiler);
void make_look_up(const Node& node, Compiler& compiler);
void make_add_row(const Node& node, Compiler& compiler);
void make_rms_norm(const Node& node, Compiler& compiler);
void make_layer_norm(const Node& node, Compiler& compiler);
void make_matmul(const Node& node, Compiler& compiler);
void make_head_matmul(const Node& node, Compiler& compiler);
void make_add(const Node& node, Compiler& compiler);
void make_multiply(const Node& node, Compiler& compiler);
void make_mix(const Node& node, Compiler& compiler);
void make_magnitude(const Node& node, Compiler& compiler);
void make_sparsify(const Node& node, Compiler& compiler);
void make_scale(const Node& node, Compiler& compiler);
void make_gated(const Node& node, Compiler& compiler);
void make_activate(const Node& node, Compiler& compiler);
void make_soft_cap(const Node& node, Compiler& compiler);
void make_xielu(const Node& node, Compiler& compiler);
void make_clamp(const Node& node, Compiler& compiler);
void make_softmax(const Node& node, Compiler& compiler);
void make_view(const Node& node, Compiler& compiler);
void make_slice(const Node& node, Compiler& compiler);
void make_concat(const Node& node, Compiler& compiler);
void make_rope_angles(const Node& node, Compiler& compiler);
void make_position_temperature(const Node& node, Compiler& compiler);
void make_rope(const Node& node, Compiler& compiler);
void make_attention(const Node& node, Compiler& compiler);
void make_store_cells(const Node& node, Compiler& compiler);
void make_route(const Node& node, Compiler& compiler);
void make_experts(const Node& node, Compiler& compiler);

/// A unit of a matrix product: kernels take two panels at a time.
inline constexpr std::size_t kUnitPanels = 2;
/// So many there are in a matrix, or in a slab of it.
std::size_t panel_units(const PackedMatrix& weight);
/// The rows of some units.
UnitRange rows_of_units(const PackedMatrix& weight, UnitRange units);

GatedActivation kernel_activation(Activation activation);
/// out = activation(gate) * up, with the limits. `out` is neither of the inputs.
void apply_gate(const KernelTable& kernels, const GatedParams& params, const float* gate, const float* up,
                std::size_t n, float* out);

/// A step that makes each row of `output` from the same row of the `inputs`.
/// row(input rows, output row): pointers to the row's first float, in the order of `inputs`.
template <typename RowFunction>
void emit_rowwise(Compiler& compiler, Value output, std::initializer_list<Value> inputs, RowFunction row) {
  struct Source {
    BufferId buffer;
    std::size_t row_elements;
  };
  std::vector<Source> sources;
  Step step{.name = output.name(), .rows = output.shape().rows()};
  for (const Value& input : inputs) {
    sources.push_back({compiler.buffer(input), input.shape().row_elements()});
    step.reads.push_back(sources.back().buffer);
  }
  const Source target{compiler.buffer(output), output.shape().row_elements()};
  step.writes = {target.buffer};
  step.n_units = units_of(output.shape().rows());
  step.body = [sources, target, row](const Run& run, UnitRange range, std::span<std::byte>) {
    std::array<const float*, 4> in{};
    for (std::size_t r = range.begin; r < range.end; ++r) {
      for (std::size_t i = 0; i < sources.size(); ++i) {
        in[i] = run.data<const float>(sources[i].buffer) + r * sources[i].row_elements;
      }
      row(in, run.data<float>(target.buffer) + r * target.row_elements);
    }
  };
  compiler.emit(std::move(step));
}

}  // namespace quipu::cpu
