// Matrix products: panels are shared out, each thread takes all tokens through its own.
#include "graph/ops/matmul.h"

#include <algorithm>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/steps/steps.h"

namespace quipu::cpu {

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
                 .n_units = [weight](const Run&) { return weight->n_panels(); },
                 .body =
                     [=](const Run& run, UnitRange panels, std::span<std::byte>) {
                       const std::size_t first_row = panels.begin * kPanelRows;
                       const std::size_t end_row = std::min(panels.end * kPanelRows, weight->n_rows());
                       kernel({.panels = weight->panel(0, panels.begin),
                               .panel_stride = weight->panel_bytes(),
                               .n_rows = end_row - first_row,
                               .n_cols = weight->n_cols(),
                               .activations = run.data<const std::byte>(input.buffer),
                               .activation_stride = input.stride,
                               .n_tokens = run.count(rows),
                               .out = run.data<float>(output) + first_row,
                               .out_stride = weight->n_rows()});
                     }});
}

}  // namespace quipu::cpu
