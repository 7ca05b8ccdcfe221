// Operations on rows, one element after the other. Sums and maxima are kept in 16 lanes, element i in lane i
// mod 16, and then folded in a fixed order, so that vector kernels of any width up to 16 give the same bits.
#include "backend/cpu/kernels/instruction_sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/math.h"

namespace quipu::cpu::scalar {
namespace {

using Lanes = std::array<float, 16>;

/// Lane i takes lane i + 8, then i + 4, i + 2, i + 1.
template <typename Combine>
float fold(Lanes lanes, Combine combine) {
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] = combine(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

float larger(float a, float b) {
  return a > b ? a : b;
}

float fold_sum(const Lanes& lanes) {
  return fold(lanes, [](float a, float b) { return a + b; });
}

/// NaN stays.
float relu(float x) {
  return 0.0f > x ? 0.0f : x;
}

float apply(GatedActivation activation, float x) {
  switch (activation) {
    case GatedActivation::silu: return exact_math::silu_f32(x);
    case GatedActivation::gelu_tanh: return exact_math::gelu_tanh_f32(x);
    case GatedActivation::gelu_quick: return x / (1.0f + exact_math::exp_f32(-(kGeluQuick * x)));
    case GatedActivation::relu: return relu(x);
    case GatedActivation::relu_squared: return relu(x) * relu(x);
    case GatedActivation::sigmoid: return exact_math::sigmoid_f32(x);
    case GatedActivation::softplus: return exact_math::softplus_f32(x);
  }
  return x;
}

void rotate(const float* x, const float* cos_sin, std::size_t first, std::size_t second, float* out) {
  const float a = x[first];
  const float b = x[second];
  out[first] = std::fma(a, cos_sin[0], -(b * cos_sin[1]));
  out[second] = std::fma(a, cos_sin[1], b * cos_sin[0]);
}

void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out) {
  Lanes squares{};
  for (std::size_t i = 0; i < n; ++i) squares[i % 16] = std::fma(x[i], x[i], squares[i % 16]);
  const float mean = fold_sum(squares) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = weight == nullptr ? x[i] * inverse : (x[i] * inverse) * weight[i];
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n,
                float* out) {
  Lanes sums{};
  for (std::size_t i = 0; i < n; ++i) sums[i % 16] += x[i];
  const float mean = fold_sum(sums) / static_cast<float>(n);
  Lanes squares{};
  for (std::size_t i = 0; i < n; ++i) {
    const float distance = x[i] - mean;
    squares[i % 16] = std::fma(distance, distance, squares[i % 16]);
  }
  const float variance = fold_sum(squares) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(variance + eps);
  for (std::size_t i = 0; i < n; ++i) {
    const float normed = (x[i] - mean) * inverse;
    if (weight == nullptr) {
      out[i] = normed;
    } else {
      out[i] = bias == nullptr ? normed * weight[i] : std::fma(normed, weight[i], bias[i]);
    }
  }
}

void rope(const float* x, const float* cos_sin, std::size_t n_rot, bool halves, std::size_t n, float* out) {
  const std::size_t half = n_rot / 2;
  for (std::size_t i = 0; i < half; ++i) {
    if (halves) {
      rotate(x, cos_sin + 2 * i, i, i + half, out);
    } else {
      rotate(x, cos_sin + 2 * i, 2 * i, 2 * i + 1, out);
    }
  }
  for (std::size_t i = 2 * half; i < n; ++i) out[i] = x[i];
}

void add(const float* a, const float* b, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void multiply(const float* a, const float* b, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

void scale(const float* x, float factor, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

void gate(GatedActivation activation, const float* gate, const float* up, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = apply(activation, gate[i]) * up[i];
}

void activate(GatedActivation activation, const float* x, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = apply(activation, x[i]);
}

void soft_cap(const float* x, float cap, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = cap * exact_math::tanh_f32(x[i] / cap);
}

void clamp(const float* x, float low, float high, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const float raised = low > x[i] ? low : x[i];
    out[i] = high < raised ? high : raised;
  }
}

void softmax(const float* x, std::size_t n, float* out) {
  Lanes maxima;
  maxima.fill(-std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < n; ++i) maxima[i % 16] = larger(maxima[i % 16], x[i]);
  const float max = fold(maxima, larger);
  Lanes sums{};
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = exact_math::exp_f32(x[i] - max);
    sums[i % 16] += out[i];
  }
  const float sum = fold_sum(sums);
  for (std::size_t i = 0; i < n; ++i) out[i] = out[i] / sum;
}

void sigmoid(const float* x, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = exact_math::sigmoid_f32(x[i]);
}

void accumulate(float factor, const float* x, std::size_t n, float* acc) {
  for (std::size_t i = 0; i < n; ++i) acc[i] = std::fma(factor, x[i], acc[i]);
}

}  // namespace

void add_row_operations(KernelTable& table) {
  table.rms_norm = rms_norm;
  table.layer_norm = layer_norm;
  table.rope = rope;
  table.add = add;
  table.multiply = multiply;
  table.scale = scale;
  table.gate = gate;
  table.activate = activate;
  table.soft_cap = soft_cap;
  table.clamp = clamp;
  table.softmax = softmax;
  table.sigmoid = sigmoid;
  table.accumulate = accumulate;
}

}  // namespace quipu::cpu::scalar
