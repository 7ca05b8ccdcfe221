// Matrix products: panels are shared out, each thread takes all tokens through its own.
#include "graph/ops/matmul.h"

#include <algorithm>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/steps/steps.h"
#include "base/checked.h"

namespace quipu::cpu {

std::size_t panel_units(const PackedMatrix& weight) {
  return ceil_div(weight.n_panels(), kUnitPanels);
}

UnitRange rows_of_units(const PackedMatrix& weight, UnitRange units) {
  constexpr std::size_t kRows = kUnitPanels * kPanelRows;
  return {units.begin * kRows, std::min(units.end * kRows, weight.n_rows())};
}

void make_matmul(const Node& node, Compiler& compiler) {
  const PackedMatrix* weight = matrix_of(node.inputs[1]);
  const ActivationFormat format = activation_format(weight->type());
  const MatmulKernel kernel = compiler.kernels().matmul(weight->type());
  const ActivationRows input = compiler.activation(node.inputs[0], format);
  const BufferId output = compiler.buffer(node.output);
  const Dim rows = node.output.shape().rows();
  compiler.emit({.name = node.output.name(),
                 .reads = {input.buffer},
                 .writes = {output},
                 .n_units = [weight](const Run&) { return panel_units(*weight); },
                 .body =
                     [=](const Run& run, UnitRange units, std::span<std::byte>) {
                       const UnitRange range = rows_of_units(*weight, units);
                       kernel({.panels = weight->panel(0, range.begin / kPanelRows),
                               .panel_stride = weight->panel_bytes(),
                               .n_rows = range.end - range.begin,
                               .n_cols = weight->n_cols(),
                               .activations = run.data<const std::byte>(input.buffer),
                               .activation_stride = input.stride,
                               .n_tokens = run.count(rows),
                               .out = run.data<float>(output) + range.begin,
                               .out_stride = weight->n_rows()});
                     }});
}

namespace {

/// The heads of every row in the form that the product wants, one after the other.
ActivationRows head_activations(const Node& node, Compiler& compiler, ActivationFormat format) {
  const Value x = node.inputs[0];
  const BufferId source = compiler.buffer(x);
  const std::size_t n_cols = x.shape().last();
  if (format == ActivationFormat::f32) return {source, n_cols * sizeof(float)};
  const std::size_t n_heads = x.shape().dim(1);
  const std::size_t stride = activation_row_bytes(format, n_cols);
  const QuantizeKernel quantize = compiler.kernels().quantize(format);
  const BufferId target = compiler.create_buffer(x.shape().rows(), n_heads, stride);
  compiler.emit({.name = "quantize heads of " + x.name(),
                 .rows = x.shape().rows(),
                 .reads = {source},
                 .writes = {target},
                 .n_units = units_of(x.shape().rows()),
                 .body = [=](const Run& run, UnitRange range, std::span<std::byte>) {
                   for (std::size_t i = range.begin * n_heads; i < range.end * n_heads; ++i) {
                     quantize(run.data<float>(source) + i * n_cols, n_cols,
                              run.data<std::byte>(target) + i * stride);
                   }
                 }});
  return {target, stride};
}

}  // namespace

void make_head_matmul(const Node& node, Compiler& compiler) {
  const PackedMatrix* weight = matrix_of(node.inputs[1]);
  const ActivationRows input = head_activations(node, compiler, activation_format(weight->type()));
  const MatmulKernel kernel = compiler.kernels().matmul(weight->type());
  const BufferId output = compiler.buffer(node.output);
  const Dim rows = node.output.shape().rows();
  compiler.emit({.name = node.output.name(),
                 .reads = {input.buffer},
                 .writes = {output},
                 .n_units = [weight](const Run&) { return weight->n_slabs() * weight->n_panels(); },
                 .body =
                     [=](const Run& run, UnitRange units, std::span<std::byte>) {
                       const std::size_t n_heads = weight->n_slabs(), n_panels = weight->n_panels();
                       for (std::size_t unit = units.begin; unit < units.end;) {
                         const std::size_t head = unit / n_panels, panel = unit % n_panels;
                         const std::size_t n = std::min(units.end - unit, n_panels - panel);
                         const std::size_t first_row = panel * kPanelRows;
                         const std::size_t end_row = std::min((panel + n) * kPanelRows, weight->n_rows());
                         kernel({.panels = weight->panel(head, panel),
                                 .panel_stride = weight->panel_bytes(),
                                 .n_rows = end_row - first_row,
                                 .n_cols = weight->n_cols(),
                                 .activations = run.data<const std::byte>(input.buffer) + head * input.stride,
                                 .activation_stride = n_heads * input.stride,
                                 .n_tokens = run.count(rows),
                                 .out = run.data<float>(output) + head * weight->n_rows() + first_row,
                                 .out_stride = n_heads * weight->n_rows()});
                         unit += n;
                       }
                     }});
}

}  // namespace quipu::cpu
