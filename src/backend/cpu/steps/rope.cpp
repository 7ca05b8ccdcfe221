// Rotation: the angles once for a micro-batch, then every head of every layer.
#include "graph/ops/rope.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/steps/steps.h"
#include "base/math.h"

namespace quipu::cpu {

void make_rope_angles(const Node& node, Compiler& compiler) {
  const auto& params = node.as<RopeAnglesParams>();
  const BufferId positions = compiler.buffer(node.inputs[0]);
  const BufferId output = compiler.buffer(node.output);
  const std::vector<double> frequencies = params.frequencies;
  const double magnitude = params.magnitude;
  compiler.emit({.name = node.output.name(),
                 .rows = node.output.shape().rows(),
                 .reads = {positions},
                 .writes = {output},
                 .n_units = units_of(node.output.shape().rows()),
                 .body = [=](const Run& run, UnitRange range, std::span<std::byte>) {
                   const std::size_t n_pairs = frequencies.size();
                   for (std::size_t t = range.begin; t < range.end; ++t) {
                     const double position = run.data<const std::int32_t>(positions)[t];
                     float* out = run.data<float>(output) + t * n_pairs * 2;
                     for (std::size_t i = 0; i < n_pairs; ++i) {
                       const auto angle = exact_math::sin_cos(position * frequencies[i]);
                       out[2 * i] = static_cast<float>(angle.cos * magnitude);
                       out[2 * i + 1] = static_cast<float>(angle.sin * magnitude);
                     }
                   }
                 }});
}

void make_position_temperature(const Node& node, Compiler& compiler) {
  const auto params = node.as<PositionTemperatureParams>();
  const BufferId positions = compiler.buffer(node.inputs[0]);
  const BufferId output = compiler.buffer(node.output);
  compiler.emit({.name = node.output.name(),
                 .rows = node.output.shape().rows(),
                 .reads = {positions},
                 .writes = {output},
                 .n_units = units_of(node.output.shape().rows()),
                 .body = [=](const Run& run, UnitRange range, std::span<std::byte>) {
                   for (std::size_t t = range.begin; t < range.end; ++t) {
                     const float position = static_cast<float>(run.data<const std::int32_t>(positions)[t]);
                     const float periods =
                         std::floor((position + params.offset) / static_cast<float>(params.length));
                     const double growth = exact_math::log(std::max(periods, 0.0f) + 1.0);
                     run.data<float>(output)[t] = static_cast<float>(growth) * params.scale + 1.0f;
                   }
                 }});
}

void make_rope(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().rope;
  const bool halves = node.as<RopeParams>().style == RopeStyle::halves;
  const std::size_t n_rot = 2 * node.inputs[1].shape().dim(1);
  const std::size_t head_dim = node.output.shape().last();
  const std::size_t row_elements = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0], node.inputs[1]}, [=](const auto& in, float* out) {
    for (std::size_t i = 0; i < row_elements; i += head_dim)
      kernel(in[0] + i, in[1], n_rot, halves, head_dim, out + i);
  });
}

}  // namespace quipu::cpu
