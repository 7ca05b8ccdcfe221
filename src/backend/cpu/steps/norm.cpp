// Normalizations over the last dimension, row by row.
#include "graph/ops/norm.h"

#include "backend/cpu/steps/steps.h"

namespace quipu::cpu {

void make_rms_norm(const Node& node, Compiler& compiler) {
  const float* weight = vector_of(node.inputs[1]);
  const std::size_t width = node.output.shape().last();
  const std::size_t row_elements = node.output.shape().row_elements();
  const float eps = node.as<RmsNormParams>().eps;
  const auto kernel = compiler.kernels().rms_norm;
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    for (std::size_t i = 0; i < row_elements; i += width) kernel(in[0] + i, weight, eps, width, out + i);
  });
}

void make_layer_norm(const Node& node, Compiler& compiler) {
  const float* weight = vector_of(node.inputs[1]);
  const float* bias = vector_of(node.inputs[2]);
  const std::size_t width = node.output.shape().last();
  const std::size_t row_elements = node.output.shape().row_elements();
  const float eps = node.as<LayerNormParams>().eps;
  const auto kernel = compiler.kernels().layer_norm;
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    for (std::size_t i = 0; i < row_elements; i += width)
      kernel(in[0] + i, weight, bias, eps, width, out + i);
  });
}

}  // namespace quipu::cpu
