// Look-ups: token embeddings straight from packed panels, and the rows that become outputs.
#include "graph/ops/embedding.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/steps/steps.h"

namespace quipu::cpu {

void make_embed(const Node& node, Compiler& compiler) {
  const PackedMatrix* table = matrix_of(node.inputs[0]);
  const BufferId tokens = compiler.buffer(node.inputs[1]);
  const BufferId embeddings = compiler.buffer(node.inputs[2]);
  const BufferId output = compiler.buffer(node.output);
  const std::size_t width = table->n_cols();
  const float token_scale = node.as<EmbedParams>().token_scale;
  const auto scale = compiler.kernels().scale;
  compiler.emit({.name = node.output.name(),
                 .rows = node.output.shape().rows(),
                 .reads = {tokens, embeddings},
                 .writes = {output},
                 .n_units = units_of(node.output.shape().rows()),
                 .body =
                     [=](const Run& run, UnitRange range, std::span<std::byte> scratch) {
                       for (std::size_t t = range.begin; t < range.end; ++t) {
                         const std::span<float> out(run.data<float>(output) + t * width, width);
                         const std::int32_t token = run.data<const std::int32_t>(tokens)[t];
                         if (token >= 0) {
                           table->decode_row(0, static_cast<std::size_t>(token), out, scratch);
                           if (token_scale != 1) scale(out.data(), token_scale, width, out.data());
                         } else {
                           std::memcpy(out.data(), run.data<const float>(embeddings) + t * width,
                                       out.size_bytes());
                         }
                       }
                     },
                 .scratch_bytes = row_bytes(table->type(), width)});
}

void make_look_up(const Node& node, Compiler& compiler) {
  const PackedMatrix* table = matrix_of(node.inputs[0]);
  const BufferId rows = compiler.buffer(node.inputs[1]);
  const BufferId output = compiler.buffer(node.output);
  const std::size_t width = table->n_cols();
  compiler.emit({.name = node.output.name(),
                 .rows = node.output.shape().rows(),
                 .reads = {rows},
                 .writes = {output},
                 .n_units = units_of(node.output.shape().rows()),
                 .body =
                     [=](const Run& run, UnitRange range, std::span<std::byte> scratch) {
                       const auto last = static_cast<std::int32_t>(table->n_rows() - 1);
                       for (std::size_t t = range.begin; t < range.end; ++t) {
                         const std::int32_t row = std::clamp(run.data<const std::int32_t>(rows)[t], 0, last);
                         table->decode_row(0, static_cast<std::size_t>(row),
                                           {run.data<float>(output) + t * width, width}, scratch);
                       }
                     },
                 .scratch_bytes = row_bytes(table->type(), width)});
}

void make_add_row(const Node& node, Compiler& compiler) {
  const std::size_t width = node.output.shape().last();
  const float* row = vector_of(node.inputs[1]) + node.as<AddRowParams>().row * width;
  const auto kernel = compiler.kernels().add;
  emit_rowwise(compiler, node.output, {node.inputs[0]},
               [=](const auto& in, float* out) { kernel(in[0], row, width, out); });
}

void make_select_rows(const Node& node, Compiler& compiler) {
  const BufferId source = compiler.buffer(node.inputs[0]);
  const BufferId rows = compiler.buffer(node.inputs[1]);
  const BufferId output = compiler.buffer(node.output);
  const std::size_t width = node.output.shape().row_elements();
  compiler.emit({.name = node.output.name(),
                 .reads = {source, rows},
                 .writes = {output},
                 .n_units = units_of(node.output.shape().rows()),
                 .body = [=](const Run& run, UnitRange range, std::span<std::byte>) {
                   for (std::size_t i = range.begin; i < range.end; ++i) {
                     const auto row = static_cast<std::size_t>(run.data<const std::int32_t>(rows)[i]);
                     std::memcpy(run.data<float>(output) + i * width,
                                 run.data<const float>(source) + row * width, width * sizeof(float));
                   }
                 }});
}

}  // namespace quipu::cpu
