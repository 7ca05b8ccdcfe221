// Operations on rows, 8 elements at a time; sums and maxima in 16 lanes, as the reference has them. In the
// last vectors, lanes without an element add exact zeros.
#include "backend/cpu/kernels/avx2/vector_math.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "base/math.h"

namespace quipu::cpu::avx2 {
namespace {

template <typename Function>
void map(const float* x, std::size_t n, float* out, Function function) {
  for (std::size_t i = 0; i < n; i += kWidth) {
    store_first(out + i, n - i, function(load_first(x + i, n - i)));
  }
}

template <typename Function>
void map(const float* a, const float* b, std::size_t n, float* out, Function function) {
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __m256 left = load_first(a + i, n - i);
    store_first(out + i, n - i, function(left, load_first(b + i, n - i)));
  }
}

/// Calls step(lanes, i, count) for every 8 elements from i on, of which `count` exist: element i in lane i
/// mod 16.
template <typename Step>
Floats16 reduce(std::size_t n, Floats16 lanes, Step step) {
  for (std::size_t i = 0; i < n; i += 2 * kWidth) {
    step(lanes.low, i, n - i);
    if (i + kWidth < n) step(lanes.high, i + kWidth, n - i - kWidth);
  }
  return lanes;
}

Floats16 all(float value) {
  return {_mm256_set1_ps(value), _mm256_set1_ps(value)};
}

/// NaN stays: the second operand wins where there is one.
__m256 relu(__m256 x) {
  return _mm256_max_ps(_mm256_setzero_ps(), x);
}

/// Lane by lane: only gates take it.
__m256 softplus(__m256 x) {
  alignas(32) float lanes[kWidth];
  _mm256_store_ps(lanes, x);
  for (float& lane : lanes) lane = exact_math::softplus_f32(lane);
  return _mm256_load_ps(lanes);
}

/// Calls use(function) with the function of one vector that an activation is.
template <typename Use>
void with_activation(GatedActivation activation, Use use) {
  switch (activation) {
    case GatedActivation::silu: return use([](__m256 x) { return silu(x); });
    case GatedActivation::gelu_tanh: return use([](__m256 x) { return gelu_tanh(x); });
    case GatedActivation::gelu_quick:
      return use([](__m256 x) {
        return _mm256_div_ps(x, one_plus_exp_of_minus(_mm256_mul_ps(_mm256_set1_ps(kGeluQuick), x)));
      });
    case GatedActivation::relu: return use([](__m256 x) { return relu(x); });
    case GatedActivation::relu_squared: return use([](__m256 x) { return _mm256_mul_ps(relu(x), relu(x)); });
    case GatedActivation::sigmoid: return use([](__m256 x) { return sigmoid(x); });
    case GatedActivation::softplus: return use([](__m256 x) { return softplus(x); });
  }
}

/// Pairs (2 i, 2 i + 1): cos_sin has the layout of x.
void rope_pairs(const float* x, const float* cos_sin, std::size_t n_rot, float* out) {
  map(x, cos_sin, n_rot, out, [](__m256 pairs, __m256 angles) {
    const __m256 second = _mm256_mul_ps(_mm256_movehdup_ps(pairs), _mm256_permute_ps(angles, 0xb1));
    return _mm256_fmaddsub_ps(_mm256_moveldup_ps(pairs), angles, second);
  });
}

/// Elements 0, 2, ... 14 (kOdd = 0) or 1, 3, ... 15 of two vectors.
template <int kOdd>
__m256 every_other(__m256 first, __m256 second) {
  const __m256 mixed = _mm256_shuffle_ps(first, second, kOdd == 0 ? 0x88 : 0xdd);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
}

/// Pairs (i, i + half).
void rope_halves(const float* x, const float* cos_sin, std::size_t half, float* out) {
  for (std::size_t i = 0; i < half; i += kWidth) {
    const std::size_t count = half - i;
    const __m256 low = load_first(cos_sin + 2 * i, 2 * count);
    const __m256 high =
        2 * count > kWidth ? load_first(cos_sin + 2 * i + kWidth, 2 * count - kWidth) : _mm256_setzero_ps();
    const __m256 cosine = every_other<0>(low, high);
    const __m256 sine = every_other<1>(low, high);
    const __m256 a = load_first(x + i, count);
    const __m256 b = load_first(x + i + half, count);
    store_first(out + i, count, _mm256_fmsub_ps(a, cosine, _mm256_mul_ps(b, sine)));
    store_first(out + i + half, count, _mm256_fmadd_ps(a, sine, _mm256_mul_ps(b, cosine)));
  }
}

void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out) {
  const Floats16 squares = reduce(n, all(0), [x](__m256& sum, std::size_t i, std::size_t count) {
    const __m256 value = load_first(x + i, count);
    sum = _mm256_fmadd_ps(value, value, sum);
  });
  const float mean = fold_sum(squares) / static_cast<float>(n);
  const __m256 inverse = _mm256_set1_ps(1.0f / __builtin_sqrtf(mean + eps));
  if (weight == nullptr) {
    map(x, n, out, [inverse](__m256 value) { return _mm256_mul_ps(value, inverse); });
  } else {
    map(x, weight, n, out,
        [inverse](__m256 value, __m256 w) { return _mm256_mul_ps(_mm256_mul_ps(value, inverse), w); });
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n,
                float* out) {
  const Floats16 sums = reduce(n, all(0), [x](__m256& sum, std::size_t i, std::size_t count) {
    sum = _mm256_add_ps(sum, load_first(x + i, count));
  });
  const __m256 mean = _mm256_set1_ps(fold_sum(sums) / static_cast<float>(n));
  const Floats16 squares = reduce(n, all(0), [x, mean](__m256& sum, std::size_t i, std::size_t count) {
    const __m256 distance = keep_first(_mm256_sub_ps(load_first(x + i, count), mean), count);
    sum = _mm256_fmadd_ps(distance, distance, sum);
  });
  const float variance = fold_sum(squares) / static_cast<float>(n);
  const __m256 inverse = _mm256_set1_ps(1.0f / __builtin_sqrtf(variance + eps));
  for (std::size_t i = 0; i < n; i += kWidth) {
    const std::size_t count = n - i;
    __m256 value = _mm256_mul_ps(_mm256_sub_ps(load_first(x + i, count), mean), inverse);
    if (weight != nullptr) {
      const __m256 factors = load_first(weight + i, count);
      value = bias == nullptr ? _mm256_mul_ps(value, factors)
                              : _mm256_fmadd_ps(value, factors, load_first(bias + i, count));
    }
    store_first(out + i, count, value);
  }
}

void rope(const float* x, const float* cos_sin, std::size_t n_rot, bool halves, std::size_t n, float* out) {
  const std::size_t half = n_rot / 2;
  if (halves) {
    rope_halves(x, cos_sin, half, out);
  } else {
    rope_pairs(x, cos_sin, 2 * half, out);
  }
  if (out == x) return;
  for (std::size_t i = 2 * half; i < n; ++i) out[i] = x[i];
}

void add(const float* a, const float* b, std::size_t n, float* out) {
  map(a, b, n, out, [](__m256 left, __m256 right) { return _mm256_add_ps(left, right); });
}

void multiply(const float* a, const float* b, std::size_t n, float* out) {
  map(a, b, n, out, [](__m256 left, __m256 right) { return _mm256_mul_ps(left, right); });
}

void scale(const float* x, float factor, std::size_t n, float* out) {
  map(x, n, out, [factor](__m256 value) { return _mm256_mul_ps(value, _mm256_set1_ps(factor)); });
}

void gate(GatedActivation activation, const float* gate, const float* up, std::size_t n, float* out) {
  with_activation(activation, [&](auto function) {
    map(gate, up, n, out, [function](__m256 g, __m256 u) { return _mm256_mul_ps(function(g), u); });
  });
}

void activate(GatedActivation activation, const float* x, std::size_t n, float* out) {
  with_activation(activation, [&](auto function) { map(x, n, out, function); });
}

void soft_cap(const float* x, float cap, std::size_t n, float* out) {
  const __m256 limit = _mm256_set1_ps(cap);
  map(x, n, out, [limit](__m256 value) { return _mm256_mul_ps(limit, tanh(_mm256_div_ps(value, limit))); });
}

void clamp(const float* x, float low, float high, std::size_t n, float* out) {
  const __m256 bottom = _mm256_set1_ps(low);
  const __m256 top = _mm256_set1_ps(high);
  map(x, n, out, [=](__m256 value) { return _mm256_min_ps(top, _mm256_max_ps(bottom, value)); });
}

void softmax(const float* x, std::size_t n, float* out) {
  const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  const Floats16 maxima = reduce(n, {lowest, lowest}, [&](__m256& most, std::size_t i, std::size_t count) {
    const __m256 greater = _mm256_max_ps(most, load_first(x + i, count));
    most = select(_mm256_castsi256_ps(first_lanes(count)), greater, most);
  });
  const __m256 max = _mm256_set1_ps(fold_max(maxima));
  const Floats16 sums = reduce(n, all(0), [&](__m256& sum, std::size_t i, std::size_t count) {
    const __m256 value = exp(_mm256_sub_ps(load_first(x + i, count), max));
    store_first(out + i, count, value);
    sum = _mm256_add_ps(sum, keep_first(value, count));
  });
  const __m256 sum = _mm256_set1_ps(fold_sum(sums));
  map(out, n, out, [sum](__m256 value) { return _mm256_div_ps(value, sum); });
}

void sigmoid(const float* x, std::size_t n, float* out) {
  map(x, n, out, [](__m256 value) { return sigmoid(value); });
}

void accumulate(float factor, const float* x, std::size_t n, float* acc) {
  const __m256 factors = _mm256_set1_ps(factor);
  map(x, acc, n, acc, [factors](__m256 value, __m256 sum) { return _mm256_fmadd_ps(factors, value, sum); });
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

}  // namespace quipu::cpu::avx2
