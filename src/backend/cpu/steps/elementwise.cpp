// Element by element, row by row; and views, which are only another name for a buffer.
#include "graph/ops/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/steps/steps.h"
#include "base/math.h"

namespace quipu::cpu {

GatedActivation kernel_activation(Activation activation) {
  switch (activation) {
    case Activation::silu: return GatedActivation::silu;
    case Activation::gelu_tanh: return GatedActivation::gelu_tanh;
    case Activation::gelu_quick: return GatedActivation::gelu_quick;
    case Activation::relu: return GatedActivation::relu;
    case Activation::relu_squared: return GatedActivation::relu_squared;
    case Activation::sigmoid: return GatedActivation::sigmoid;
    case Activation::softplus: return GatedActivation::softplus;
  }
  return GatedActivation::silu;
}

void apply_gate(const KernelTable& kernels, const GatedParams& params, const float* gate, const float* up,
                std::size_t n, float* out) {
  const GatedActivation activation = kernel_activation(params.activation);
  const GateLimits& limits = params.limits;
  if (limits == GateLimits{}) return kernels.gate(activation, gate, up, n, out);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float bound = limits.bound > 0 ? limits.bound : kInfinity;
  std::array<float, 64> raised;
  for (std::size_t i = 0; i < n; i += raised.size()) {
    const std::size_t count = std::min(raised.size(), n - i);
    kernels.clamp(gate + i, -kInfinity, limits.on_gate ? bound : kInfinity, count, out + i);
    kernels.activate(activation, out + i, count, out + i);
    kernels.clamp(out + i, -kInfinity, limits.on_gate ? kInfinity : bound, count, out + i);
    kernels.clamp(up + i, -bound, bound, count, raised.data());
    for (std::size_t j = 0; j < count; ++j) raised[j] += limits.up_offset;
    kernels.multiply(out + i, raised.data(), count, out + i);
  }
}

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

void make_multiply(const Node& node, Compiler& compiler) {
  const KernelTable& kernels = compiler.kernels();
  const std::size_t n = node.output.shape().row_elements();
  const Value other = node.inputs[1];
  if (other.graph().info(other).source == ValueSource::weight) {
    const float* factors = vector_of(other);
    const bool is_by_run = other.shape().rank() == 2 ? other.shape().last() == 1 : other.shape() == Shape{1};
    const std::size_t width =
        is_by_run ? n / other.shape().dim(0) : other.shape().row_elements() * other.shape().dim(0);
    emit_rowwise(compiler, node.output, {node.inputs[0]}, [=, &kernels](const auto& in, float* out) {
      for (std::size_t i = 0; i < n; i += width) {
        if (is_by_run) {
          kernels.scale(in[0] + i, factors[i / width], width, out + i);
        } else {
          kernels.multiply(in[0] + i, factors, width, out + i);
        }
      }
    });
    return;
  }
  const std::size_t n_factors = other.shape().row_elements();
  const std::size_t run = n / n_factors;
  emit_rowwise(compiler, node.output, {node.inputs[0], other}, [=, &kernels](const auto& in, float* out) {
    if (run == 1) return kernels.multiply(in[0], in[1], n, out);
    for (std::size_t i = 0; i < n_factors; ++i) kernels.scale(in[0] + i * run, in[1][i], run, out + i * run);
  });
}

void make_scale(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().scale;
  const auto params = node.as<ScaleParams>();
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    kernel(in[0], params.factor, n, out);
    if (params.offset == 0) return;
    for (std::size_t i = 0; i < n; ++i) out[i] += params.offset;
  });
}

void make_mix(const Node& node, Compiler& compiler) {
  const auto accumulate = compiler.kernels().accumulate;
  const std::size_t n_in = node.inputs[0].shape().dim(1);
  const std::size_t n_out = node.output.shape().dim(1);
  const std::size_t width = node.output.shape().last();
  emit_rowwise(compiler, node.output, {node.inputs[0], node.inputs[1]}, [=](const auto& in, float* out) {
    std::fill_n(out, n_out * width, 0.0f);
    for (std::size_t m = 0; m < n_out; ++m) {
      for (std::size_t i = 0; i < n_in; ++i)
        accumulate(in[1][m * n_in + i], in[0] + i * width, width, out + m * width);
    }
  });
}

void make_magnitude(const Node& node, Compiler& compiler) {
  const std::size_t width = node.inputs[0].shape().last();
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    for (std::size_t i = 0; i < n; ++i) {
      double squares = 0;
      for (std::size_t j = 0; j < width; ++j) squares += double{in[0][i * width + j]} * in[0][i * width + j];
      out[i] = static_cast<float>(std::sqrt(squares));
    }
  });
}

void make_sparsify(const Node& node, Compiler& compiler) {
  const double deviations = node.as<SparsifyParams>().deviations;
  const std::size_t width = node.output.shape().last();
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    for (std::size_t begin = 0; begin < n; begin += width) {
      const float* x = in[0] + begin;
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < width; ++i) sum += x[i];
      const double mean = sum / static_cast<double>(width);
      for (std::size_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const double deviation = std::sqrt(squares / static_cast<double>(width - 1));
      const float least = static_cast<float>(mean + deviations * deviation);
      for (std::size_t i = 0; i < width; ++i) out[begin + i] = least > x[i] ? 0.0f : x[i] - least;
    }
  });
}

void make_gated(const Node& node, Compiler& compiler) {
  const KernelTable& kernels = compiler.kernels();
  const auto params = node.as<GatedParams>();
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(
      compiler, node.output, {node.inputs[0], node.inputs[1]},
      [=, &kernels](const auto& in, float* out) { apply_gate(kernels, params, in[0], in[1], n, out); });
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

void make_xielu(const Node& node, Compiler& compiler) {
  const auto params = node.as<XieluParams>();
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    for (std::size_t i = 0; i < n; ++i) {
      const float x = in[0][i];
      // Near 0 the difference to 1 would lose its digits in single precision.
      const auto negative = [&] {
        return params.alpha_n * (static_cast<float>(exact_math::exp(std::min(x, params.eps)) - 1) - x);
      };
      out[i] = (x > 0 ? params.alpha_p * x * x : negative()) + params.beta * x;
    }
  });
}

void make_clamp(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().clamp;
  const auto bounds = node.as<ClampParams>();
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]},
               [=](const auto& in, float* out) { kernel(in[0], bounds.low, bounds.high, n, out); });
}

void make_softmax(const Node& node, Compiler& compiler) {
  const auto kernel = compiler.kernels().softmax;
  const std::size_t width = node.output.shape().last();
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    for (std::size_t i = 0; i < n; i += width) kernel(in[0] + i, width, out + i);
  });
}

void make_view(const Node& node, Compiler& compiler) {
  compiler.alias(node.output, node.inputs[0]);
}

void make_slice(const Node& node, Compiler& compiler) {
  const std::size_t first = node.as<SliceParams>().first;
  const std::size_t width = node.inputs[0].shape().last();
  const std::size_t count = node.output.shape().last();
  const std::size_t n = node.output.shape().row_elements();
  emit_rowwise(compiler, node.output, {node.inputs[0]}, [=](const auto& in, float* out) {
    const float* from = in[0] + first;
    for (std::size_t i = 0; i < n; i += count, from += width)
      std::memcpy(out + i, from, count * sizeof(float));
  });
}

void make_concat(const Node& node, Compiler& compiler) {
  const std::size_t a_width = node.inputs[0].shape().last();
  const std::size_t b_width = node.inputs[1].shape().last();
  const std::size_t n = node.output.shape().row_elements();
  const bool shared = node.inputs[1].shape().row_elements() == b_width;
  emit_rowwise(compiler, node.output, {node.inputs[0], node.inputs[1]}, [=](const auto& in, float* out) {
    const float* a = in[0];
    const float* b = in[1];
    for (std::size_t i = 0; i < n; i += a_width + b_width) {
      std::memcpy(out + i, a, a_width * sizeof(float));
      std::memcpy(out + i + a_width, b, b_width * sizeof(float));
      a += a_width;
      if (!shared) b += b_width;
    }
  });
}

}  // namespace quipu::cpu
