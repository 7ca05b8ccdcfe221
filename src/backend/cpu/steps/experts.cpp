// Mixture of experts: rows are sorted by expert, each expert's panels see all of its rows at once, and
// results are summed slot by slot, so that which tokens share a batch changes nothing.
#include "graph/ops/experts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/steps/steps.h"
#include "base/checked.h"

namespace quipu::cpu {
namespace {

/// The least sum that chosen weights are divided by.
constexpr float kLeastWeightSum = 0x1p-14f;

/// What choosing the experts of one row needs room for: n_experts of each.
struct RouteScratch {
  std::span<float> gates, scores;
  std::span<std::uint32_t> order;

  static std::size_t bytes(std::size_t n_experts) {
    return n_experts * (2 * sizeof(float) + sizeof(std::uint32_t));
  }
  RouteScratch(std::span<std::byte> scratch, std::size_t n_experts)
      : gates(reinterpret_cast<float*>(scratch.data()), n_experts),
        scores(gates.data() + n_experts, n_experts),
        order(reinterpret_cast<std::uint32_t*>(scores.data() + n_experts), n_experts) {}
};

/// Sorts the `n` best of `order` to its front: larger scores first, equal ones by number.
void sort_best(std::span<std::uint32_t> order, std::size_t n, std::span<const float> scores) {
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      // NaN sorts last, so that the order stays a strict one whatever the router says.
                      const bool a_is_number = scores[a] == scores[a];
                      const bool b_is_number = scores[b] == scores[b];
                      if (a_is_number != b_is_number) return a_is_number;
                      if (a_is_number && scores[a] != scores[b]) return scores[a] > scores[b];
                      return a < b;
                    });
}

/// Leaves the experts of the best groups alone and sets the others' scores to minus infinity.
void keep_best_groups(const RouteParams& params, RouteScratch& scratch) {
  const std::size_t size = scratch.scores.size() / params.n_groups;
  std::array<float, kMaxExpertGroups> sums{};
  std::array<std::uint32_t, kMaxExpertGroups> groups{};
  for (std::size_t group = 0; group < params.n_groups; ++group) {
    const auto members = scratch.order.subspan(group * size, size);
    const std::size_t n_best = std::min<std::size_t>(2, size);
    sort_best(members, n_best, scratch.scores);
    for (std::size_t i = 0; i < n_best; ++i) sums[group] += scratch.scores[members[i]];
    groups[group] = static_cast<std::uint32_t>(group);
  }
  sort_best(std::span(groups).first(params.n_groups), params.n_groups, sums);
  for (std::size_t i = params.n_groups_used; i < params.n_groups; ++i) {
    std::fill_n(scratch.scores.begin() + static_cast<std::ptrdiff_t>(groups[i] * size), size,
                -std::numeric_limits<float>::infinity());
  }
}

/// Chooses the experts of one row.
void route_row(const KernelTable& kernels, const RouteParams& params, std::span<const float> logits,
               const float* bias, const float* weight_scale, RouteScratch scratch, float* out) {
  const std::size_t n_experts = logits.size();
  switch (params.gating) {
    case ExpertGating::softmax: kernels.softmax(logits.data(), n_experts, scratch.gates.data()); break;
    case ExpertGating::sigmoid: kernels.sigmoid(logits.data(), n_experts, scratch.gates.data()); break;
    case ExpertGating::chosen_softmax: std::copy(logits.begin(), logits.end(), scratch.gates.begin()); break;
  }
  std::copy(scratch.gates.begin(), scratch.gates.end(), scratch.scores.begin());
  if (bias != nullptr) kernels.add(scratch.gates.data(), bias, n_experts, scratch.scores.data());
  std::iota(scratch.order.begin(), scratch.order.end(), 0u);
  if (params.n_groups > 1) keep_best_groups(params, scratch);
  sort_best(scratch.order, params.n_used, scratch.scores);

  if (params.chunk_size > 1) {
    for (std::uint32_t& number : scratch.order.first(params.n_used))
      number /= static_cast<std::uint32_t>(params.chunk_size);
  }
  const auto weights = scratch.scores.first(params.n_used);  // the scores have served
  for (std::size_t slot = 0; slot < params.n_used; ++slot) weights[slot] = scratch.gates[scratch.order[slot]];
  if (params.gating == ExpertGating::chosen_softmax)
    kernels.softmax(weights.data(), params.n_used, weights.data());
  float sum = 0;
  for (const float weight : weights) sum += weight;
  if (sum < kLeastWeightSum) sum = kLeastWeightSum;
  for (std::size_t slot = 0; slot < params.n_used; ++slot) {
    out[2 * slot] = static_cast<float>(scratch.order[slot]);
    out[2 * slot + 1] = (params.normalize ? weights[slot] / sum : weights[slot]) * params.scale;
    if (weight_scale != nullptr) out[2 * slot + 1] *= weight_scale[scratch.order[slot]];
  }
}

/// Buffers that the steps of one expert layer share. "Sorted" rows are (token, slot) pairs in the order of
/// their experts.
struct ExpertBuffers {
  BufferId routes;
  BufferId first_row;  ///< i32 [n_experts + 1]: sorted rows of expert e are [first_row[e], first_row[e + 1])
  BufferId row_of;     ///< i32 [token * n_slots + slot]: sorted row
};

/// Where a pair (token * n_slots + slot) is sorted to.
std::size_t sorted_row(const Run& run, const ExpertBuffers& sorted, std::size_t pair) {
  return static_cast<std::size_t>(run.data<const std::int32_t>(sorted.row_of)[pair]);
}

struct ExpertLayer {
  const PackedMatrix *gate, *up, *down;
  std::size_t n_experts, n_slots, width, hidden;
  Dim rows;
  ExpertsParams params;
};

/// One task for all rows of one expert, for the thread's rows of the matrix.
void multiply_expert(const PackedMatrix& weight, MatmulKernel kernel, std::size_t expert, UnitRange range,
                     const std::byte* activations, std::size_t stride, std::size_t first, std::size_t n,
                     float* out) {
  kernel({.panels = weight.panel(expert, range.begin / kPanelRows),
          .panel_stride = weight.panel_bytes(),
          .n_rows = range.end - range.begin,
          .n_cols = weight.n_cols(),
          .activations = activations + first * stride,
          .activation_stride = stride,
          .n_tokens = n,
          .out = out + first * weight.n_rows() + range.begin,
          .out_stride = weight.n_rows()});
}

ExpertBuffers emit_sort(const Node& node, Compiler& compiler, const ExpertLayer& layer) {
  const std::size_t n_experts = layer.n_experts, n_slots = layer.n_slots;
  const Dim rows = layer.rows;
  const ExpertBuffers buffers{.routes = compiler.buffer(node.inputs[1]),
                              .first_row = compiler.create_buffer(1, (n_experts + 1) * sizeof(std::int32_t)),
                              .row_of = compiler.create_buffer(rows, n_slots, sizeof(std::int32_t))};
  compiler.emit({.name = node.output.name() + " sort",
                 .reads = {buffers.routes},
                 .writes = {buffers.first_row, buffers.row_of},
                 .n_units = [](const Run&) { return std::size_t{1}; },
                 .body =
                     [=](const Run& run, UnitRange, std::span<std::byte>) {
                       const float* routes = run.data<const float>(buffers.routes);
                       auto* first_row = run.data<std::int32_t>(buffers.first_row);
                       const std::size_t n_pairs = run.count(rows) * n_slots;
                       std::fill_n(first_row, n_experts + 1, 0);
                       for (std::size_t i = 0; i < n_pairs; ++i)
                         ++first_row[static_cast<std::size_t>(routes[2 * i]) + 1];
                       std::partial_sum(first_row, first_row + n_experts + 1, first_row);
                       // Placing a pair moves its expert's start; afterwards all starts have moved up by one
                       // expert.
                       for (std::size_t i = 0; i < n_pairs; ++i) {
                         run.data<std::int32_t>(buffers.row_of)[i] =
                             first_row[static_cast<std::size_t>(routes[2 * i])]++;
                       }
                       std::copy_backward(first_row, first_row + n_experts, first_row + n_experts + 1);
                       first_row[0] = 0;
                     }});
  return buffers;
}

/// The layer's input rows in sorted order, in the form that gate and up want. A unit is a token: unless its
/// experts weigh it, its row is made once and copied to where the other experts look for it.
BufferId emit_gather(const Node& node, Compiler& compiler, const ExpertLayer& layer,
                     const ExpertBuffers& sorted, ActivationFormat format) {
  const std::size_t width = layer.width, n_slots = layer.n_slots;
  const std::size_t stride = activation_row_bytes(format, width);
  const QuantizeKernel quantize = compiler.kernels().quantize(format);
  const BufferId input = compiler.buffer(node.inputs[0]);
  const BufferId target = compiler.create_buffer(layer.rows, n_slots, stride);
  const bool weigh = layer.params.weigh_input;
  const auto scale = compiler.kernels().scale;
  compiler.emit({.name = node.output.name() + " gather",
                 .reads = {input, sorted.row_of, sorted.routes},
                 .writes = {target},
                 .n_units = units_of(layer.rows),
                 .body =
                     [=](const Run& run, UnitRange range, std::span<std::byte> scratch) {
                       const std::byte* made = nullptr;
                       for (std::size_t pair = range.begin * n_slots; pair < range.end * n_slots; ++pair) {
                         std::byte* out =
                             run.data<std::byte>(target) + sorted_row(run, sorted, pair) * stride;
                         if (pair % n_slots != 0 && !weigh) {
                           std::memcpy(out, made, stride);
                           continue;
                         }
                         const float* x = run.data<const float>(input) + pair / n_slots * width;
                         if (weigh) {
                           auto* weighed = reinterpret_cast<float*>(scratch.data());
                           scale(x, run.data<const float>(sorted.routes)[2 * pair + 1], width, weighed);
                           x = weighed;
                         }
                         if (quantize != nullptr) {
                           quantize(x, width, out);
                         } else {
                           std::memcpy(out, x, width * sizeof(float));
                         }
                         made = out;
                       }
                     },
                 .scratch_bytes = weigh ? width * sizeof(float) : 0});
  return target;
}

/// Sorted rows times each expert's own matrix.
BufferId emit_product(const Node& node, Compiler& compiler, const ExpertLayer& layer,
                      const ExpertBuffers& sorted, const PackedMatrix* weight, BufferId input) {
  const std::size_t n_experts = layer.n_experts;
  const std::size_t stride = activation_row_bytes(activation_format(weight->type()), weight->n_cols());
  const MatmulKernel kernel = compiler.kernels().matmul(weight->type());
  const BufferId output = compiler.create_buffer(layer.rows, layer.n_slots, weight->n_rows() * sizeof(float));
  compiler.emit({.name = node.output.name() + " product",
                 .reads = {input, sorted.first_row},
                 .writes = {output},
                 .n_units = [weight](const Run&) { return panel_units(*weight); },
                 .body =
                     [=](const Run& run, UnitRange units, std::span<std::byte>) {
                       const UnitRange range = rows_of_units(*weight, units);
                       const auto* first_row = run.data<const std::int32_t>(sorted.first_row);
                       for (std::size_t expert = 0; expert < n_experts; ++expert) {
                         const auto first = static_cast<std::size_t>(first_row[expert]);
                         const std::size_t n = static_cast<std::size_t>(first_row[expert + 1]) - first;
                         if (n == 0) continue;
                         multiply_expert(*weight, kernel, expert, range, run.data<const std::byte>(input),
                                         stride, first, n, run.data<float>(output));
                       }
                     }});
  return output;
}

/// Sorted rows plus each expert's own bias; `rows` themselves where there is none.
BufferId emit_bias(const Node& node, Compiler& compiler, const ExpertLayer& layer,
                   const ExpertBuffers& sorted, Value bias, BufferId rows) {
  const float* biases = vector_of(bias);
  if (biases == nullptr) return rows;
  const std::size_t width = bias.shape().last();
  const auto add = compiler.kernels().add;
  const BufferId output = compiler.create_buffer(layer.rows, layer.n_slots, width * sizeof(float));
  compiler.emit({.name = node.output.name() + " bias",
                 .reads = {rows, sorted.row_of, sorted.routes},
                 .writes = {output},
                 .n_units = units_of(layer.rows),
                 .body = [=, n_slots = layer.n_slots](const Run& run, UnitRange range, std::span<std::byte>) {
                   for (std::size_t pair = range.begin * n_slots; pair < range.end * n_slots; ++pair) {
                     const std::size_t row = sorted_row(run, sorted, pair);
                     const auto expert =
                         static_cast<std::size_t>(run.data<const float>(sorted.routes)[2 * pair]);
                     add(run.data<const float>(rows) + row * width, biases + expert * width, width,
                         run.data<float>(output) + row * width);
                   }
                 }});
  return output;
}

/// activation(gate) * up (or activation(up)) on sorted rows, in the form that down wants. A unit is a token
/// with all of its experts.
BufferId emit_activation(const Node& node, Compiler& compiler, const ExpertLayer& layer,
                         const ExpertBuffers& sorted, std::optional<BufferId> gate, BufferId up) {
  const ActivationFormat format = activation_format(layer.down->type());
  const std::size_t hidden = layer.hidden;
  const std::size_t stride = activation_row_bytes(format, hidden);
  const KernelTable& kernels = compiler.kernels();
  const QuantizeKernel quantize = kernels.quantize(format);
  const GatedParams params{layer.params.activation, layer.params.limits};
  const GatedActivation activation = kernel_activation(params.activation);
  const std::size_t up_width = layer.up->n_rows();  // with a gate in it, twice as wide as down's input
  const BufferId target = compiler.create_buffer(layer.rows, layer.n_slots, stride);
  std::vector<BufferId> reads{up, sorted.row_of};
  if (gate) reads.push_back(*gate);
  compiler.emit({.name = node.output.name() + " activation",
                 .reads = reads,
                 .writes = {target},
                 .n_units = units_of(layer.rows),
                 .body =
                     [=, &kernels, n_slots = layer.n_slots](const Run& run, UnitRange range,
                                                            std::span<std::byte> scratch) {
                       for (std::size_t pair = range.begin * n_slots; pair < range.end * n_slots; ++pair) {
                         const std::size_t row = sorted_row(run, sorted, pair);
                         std::byte* out = run.data<std::byte>(target) + row * stride;
                         auto* values = reinterpret_cast<float*>(quantize != nullptr ? scratch.data() : out);
                         const float* x = run.data<const float>(up) + row * up_width;
                         if (gate) {
                           apply_gate(kernels, params, run.data<const float>(*gate) + row * hidden, x, hidden,
                                      values);
                         } else if (up_width != hidden) {
                           apply_gate(kernels, params, x, x + hidden, hidden, values);
                         } else {
                           kernels.activate(activation, x, hidden, values);
                         }
                         if (quantize != nullptr) quantize(values, hidden, out);
                       }
                     },
                 .scratch_bytes = hidden * sizeof(float)});
  return target;
}

void emit_combine(const Node& node, Compiler& compiler, const ExpertLayer& layer, const ExpertBuffers& sorted,
                  BufferId results) {
  const std::size_t width = layer.width, n_slots = layer.n_slots;
  const auto accumulate = compiler.kernels().accumulate;
  const bool weighed = layer.params.weigh_input;
  const BufferId output = compiler.buffer(node.output);
  compiler.emit({.name = node.output.name(),
                 .rows = layer.rows,
                 .reads = {results, sorted.routes, sorted.row_of},
                 .writes = {output},
                 .n_units = units_of(layer.rows),
                 .body = [=](const Run& run, UnitRange range, std::span<std::byte>) {
                   for (std::size_t t = range.begin; t < range.end; ++t) {
                     float* out = run.data<float>(output) + t * width;
                     std::fill_n(out, width, 0.0f);
                     for (std::size_t pair = t * n_slots; pair < (t + 1) * n_slots; ++pair) {
                       const std::size_t row = sorted_row(run, sorted, pair);
                       accumulate(weighed ? 1.0f : run.data<const float>(sorted.routes)[2 * pair + 1],
                                  run.data<const float>(results) + row * width, width, out);
                     }
                   }
                 }});
}

}  // namespace

void make_route(const Node& node, Compiler& compiler) {
  const auto params = node.as<RouteParams>();
  const std::size_t n_experts = node.inputs[0].shape().last();
  const float* bias = vector_of(node.inputs[1]);
  const float* weight_scale = vector_of(node.inputs[2]);
  const BufferId logits = compiler.buffer(node.inputs[0]);
  const BufferId output = compiler.buffer(node.output);
  const KernelTable& kernels = compiler.kernels();
  compiler.emit(
      {.name = node.output.name(),
       .rows = node.output.shape().rows(),
       .reads = {logits},
       .writes = {output},
       .n_units = units_of(node.output.shape().rows()),
       .body =
           [=, &kernels](const Run& run, UnitRange range, std::span<std::byte> scratch) {
             for (std::size_t t = range.begin; t < range.end; ++t) {
               route_row(kernels, params, {run.data<const float>(logits) + t * n_experts, n_experts}, bias,
                         weight_scale, {scratch, n_experts}, run.data<float>(output) + t * params.n_used * 2);
             }
           },
       .scratch_bytes = RouteScratch::bytes(n_experts)});
}

void make_experts(const Node& node, Compiler& compiler) {
  const PackedMatrix* up = matrix_of(node.inputs[3]);
  const PackedMatrix* down = matrix_of(node.inputs[4]);
  const ExpertLayer layer{.gate = matrix_of(node.inputs[2]),
                          .up = up,
                          .down = down,
                          .n_experts = up->n_slabs(),
                          .n_slots = node.inputs[1].shape().dim(1),
                          .width = up->n_cols(),
                          .hidden = down->n_cols(),
                          .rows = node.output.shape().rows(),
                          .params = node.as<ExpertsParams>()};
  const ExpertBuffers sorted = emit_sort(node, compiler, layer);
  const ActivationFormat up_format = activation_format(layer.up->type());
  const BufferId input = emit_gather(node, compiler, layer, sorted, up_format);
  std::optional<BufferId> gate;
  if (layer.gate != nullptr) {
    const ActivationFormat gate_format = activation_format(layer.gate->type());
    const BufferId gate_input =
        gate_format == up_format ? input : emit_gather(node, compiler, layer, sorted, gate_format);
    gate = emit_bias(node, compiler, layer, sorted, node.inputs[5],
                     emit_product(node, compiler, layer, sorted, layer.gate, gate_input));
  }
  const BufferId raised = emit_bias(node, compiler, layer, sorted, node.inputs[6],
                                    emit_product(node, compiler, layer, sorted, layer.up, input));
  const BufferId hidden = emit_activation(node, compiler, layer, sorted, gate, raised);
  const BufferId results = emit_bias(node, compiler, layer, sorted, node.inputs[7],
                                     emit_product(node, compiler, layer, sorted, layer.down, hidden));
  emit_combine(node, compiler, layer, sorted, results);
}

}  // namespace quipu::cpu
