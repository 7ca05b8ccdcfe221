// Element by element: sums, products, activations; and the views that change a shape without touching data.
#pragma once

#include "graph/graph.h"

namespace quipu {

/// a + b. b has a's shape, or is a vector weight as long as a's last dimension (a bias).
extern const Operation kAdd;
Value add(Value a, Value b);

/// a * b. b has a's shape, or has fewer elements in a row: then each of them multiplies an equal run of a's
/// ([rows, heads, dim] by [rows, heads, 1] or by [rows, 1]). Or b is a vector weight: [last], [heads, last],
/// [heads, 1] or [1].
extern const Operation kMultiply;
Value multiply(Value a, Value b);

struct ScaleParams {
  float factor;
  float offset;
};
/// x * factor + offset.
extern const Operation kScale;
Value scale(Value x, float factor, float offset = 0);

/// out[r, m] = sum over n of factors[r, m, n] * x[r, n], rows of x in order. x: [rows, n, width]; factors:
/// [rows, m, n] -> [rows, m, width]
extern const Operation kMix;
Value mix(Value x, Value factors);

/// sqrt(sum(x^2)) over the last dimension, which becomes 1.
extern const Operation kMagnitude;
Value magnitude(Value x);

struct SparsifyParams {
  float deviations;
};
/// What is left of x above its mean plus so many standard deviations, over the last dimension; 0 below. Gemma
/// Team 2025, Gemma 3n.
extern const Operation kSparsify;
Value sparsify(Value x, float deviations);

enum class Activation : std::uint8_t {
  silu,          ///< x / (1 + exp(-x))
  gelu_tanh,     ///< x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
  gelu_quick,    ///< x / (1 + exp(-1.702 x))
  relu,          ///< max(x, 0)
  relu_squared,  ///< max(x, 0)^2. So et al. 2021
  sigmoid,       ///< 1 / (1 + exp(-x))
  softplus,      ///< log(1 + exp(x))
};
struct ActivationParams {
  Activation activation;
};

/// Bounds of a gated product: `up` is kept in [-bound, bound], and either the gate or what its activation
/// makes of it below `bound`.
struct GateLimits {
  float bound = 0;       ///< 0: none
  bool on_gate = false;  ///< the gate is bounded before its activation, else what the activation gives
  float up_offset = 0;   ///< added to `up` when it has been bounded

  bool operator==(const GateLimits&) const = default;
};
struct GatedParams {
  Activation activation;
  GateLimits limits{};
};
/// activation(gate) * up.  Shazeer 2020, "GLU Variants Improve Transformer".
extern const Operation kGated;
Value gated(Activation activation, Value gate, Value up, const GateLimits& limits = {});
/// activation(x).
extern const Operation kActivate;
Value activate(Activation activation, Value x);

struct SoftCapParams {
  float cap;
};
/// cap * tanh(x / cap).
extern const Operation kSoftCap;
Value soft_cap(Value x, float cap);

/// Huang and Schlag 2024, "Deriving Activation Functions Using Integration", arXiv:2411.13010
struct XieluParams {
  float alpha_n = 0, alpha_p = 0, beta = 0, eps = 0;
};
/// x > 0: alpha_p x^2 + beta x; else alpha_n (exp(min(x, eps)) - 1 - x) + beta x.
extern const Operation kXielu;
Value xielu(Value x, const XieluParams& params);

struct ClampParams {
  float low, high;
};
/// The nearest number of [low, high]; NaN stays.
extern const Operation kClamp;
Value clamp(Value x, float low, float high);

/// exp(x) / sum(exp(x)), over the last dimension.
extern const Operation kSoftmax;
Value softmax(Value x);

/// The same numbers under another shape; rows and elements per row stay. Costs nothing.
extern const Operation kView;
Value view(Value x, Shape shape);

struct SliceParams {
  std::size_t first;
};
/// Elements [first, first + count) of the last dimension.
extern const Operation kSlice;
Value slice(Value x, std::size_t first, std::size_t count);

/// a and b side by side along the last dimension: [rows, heads, x] and [rows, heads or 1, y] -> [rows, heads,
/// x + y]; where b has one head, all of a's share it. Or [rows, x] and [rows, y] -> [rows, x + y].
extern const Operation kConcat;
Value concat(Value a, Value b);

}  // namespace quipu
