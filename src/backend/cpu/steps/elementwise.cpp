// Element by element, row by row; and views, which are only another name for a buffer.
#include "graph/ops/elementwise.h"

#include "backend/cpu/steps/steps.h"

namespace quipu::cpu {
namespace {

GatedActivation kernel_activation(Activation activation) {
  return activation == Activation::silu ? GatedActivation::silu : GatedActivation::gelu_tanh;
}

}  // namespace

void make_add(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().add;
  const std::size_t row_elements = node.output.shape().row_elements();
  const Value other = node.inputs[1];
  if (other.graph().info(other).source != ValueSource::weight) {
    emit_rowwise(compiler, node.output, {node.inputs[0], other},
                 [=](const auto& in, float* out) { kernel(in[0], in[1], row_elements, out); });
    return;
  }
  const float* bias = vector_of(other);
  const std::size_t width = node.output.shape().last();
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    for (std::size_t i = 0; i < row_elements; i += width) kernel(in[0] + i, bias, width, out + i);
  });
}

void make_scale(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().scale;
  const float factor = node.as<ScaleParams>().factor;
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]},
               [=](const auto& in, float* out) { kernel(in[0], factor, n, out); });
}

void make_gated(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().gate;
  const GatedActivation activation = kernel_activation(node.as<ActivationParams>().activation);
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0], node.inputs[1]},
               [=](const auto& in, float* out) { kernel(activation, in[0], in[1], n, out); });
}

void make_activate(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().activate;
  const GatedActivation activation = kernel_activation(node.as<ActivationParams>().activation);
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]},
               [=](const auto& in, float* out) { kernel(activation, in[0], n, out); });
}

void make_soft_cap(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().soft_cap;
  const float cap = node.as<SoftCapParams>().cap;
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]},
               [=](const auto& in, float* out) { kernel(in[0], cap, n, out); });
}

void make_view(const Node& node, Compiler& compiler) {
  compiler.alias(node.output, node.inputs[0]);
}

}  // namespace quipu::cpu
