// Operations on rows, 16 elements at a time; the last ones under a mask, where lanes that are off add exact
// zeros.
#include "backend/cpu/kernels/instruction_sets.h"

#include <immintrin.h>

#include "backend/cpu/kernels/avx512/vector_math.h"
#include "base/math.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kLanes = 16;

__mmask16 first_lanes(std::size_t count) {
  return static_cast<__mmask16>(count >= kLanes ? 0xffffu : (1u << count) - 1u);
}

/// Calls step(i, mask) for i = 0, 16, ... with the mask of the elements that exist.
template <typename Step>
void for_each_vector(std::size_t n, Step step) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) step(i, __mmask16{0xffff});
  if (i < n) step(i, first_lanes(n - i));
}

template <typename Function>
void map(const float* x, std::size_t n, float* out, Function function) {
  for_each_vector(n, [&](std::size_t i, __mmask16 mask) {
    _mm512_mask_storeu_ps(out + i, mask, function(_mm512_maskz_loadu_ps(mask, x + i)));
  });
}

template <typename Function>
void map(const float* a, const float* b, std::size_t n, float* out, Function function) {
  for_each_vector(n, [&](std::size_t i, __mmask16 mask) {
    const __m512 left = _mm512_maskz_loadu_ps(mask, a + i);
    _mm512_mask_storeu_ps(out + i, mask, function(left, _mm512_maskz_loadu_ps(mask, b + i)));
  });
}

/// NaN stays: the second operand wins where there is one.
__m512 relu(__m512 x) {
  return _mm512_max_ps(_mm512_setzero_ps(), x);
}

/// Lane by lane: only gates take it.
__m512 softplus(__m512 x) {
  alignas(64) float lanes[kLanes];
  _mm512_store_ps(lanes, x);
  for (float& lane : lanes) lane = exact_math::softplus_f32(lane);
  return _mm512_load_ps(lanes);
}

/// Calls use(function) with the function of one vector that an activation is.
template <typename Use>
void with_activation(GatedActivation activation, Use use) {
  switch (activation) {
    case GatedActivation::silu: return use([](__m512 x) { return silu(x); });
    case GatedActivation::gelu_tanh: return use([](__m512 x) { return gelu_tanh(x); });
    case GatedActivation::gelu_quick:
      return use([](__m512 x) {
        return _mm512_div_ps(x, one_plus_exp_of_minus(_mm512_mul_ps(_mm512_set1_ps(kGeluQuick), x)));
      });
    case GatedActivation::relu: return use([](__m512 x) { return relu(x); });
    case GatedActivation::relu_squared: return use([](__m512 x) { return _mm512_mul_ps(relu(x), relu(x)); });
    case GatedActivation::sigmoid: return use([](__m512 x) { return sigmoid(x); });
    case GatedActivation::softplus: return use([](__m512 x) { return softplus(x); });
  }
}

/// Pairs (2 i, 2 i + 1): cos_sin has the layout of x.
void rope_pairs(const float* x, const float* cos_sin, std::size_t n_rot, float* out) {
  map(x, cos_sin, n_rot, out, [](__m512 pairs, __m512 angles) {
    const __m512 second = _mm512_mul_ps(_mm512_movehdup_ps(pairs), _mm512_permute_ps(angles, 0xb1));
    return _mm512_fmaddsub_ps(_mm512_moveldup_ps(pairs), angles, second);
  });
}

/// Pairs (i, i + half).
void rope_halves(const float* x, const float* cos_sin, std::size_t half, float* out) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for_each_vector(half, [&](std::size_t i, __mmask16 mask) {
    const std::size_t angles = 2 * (half - i);
    const __m512 low = _mm512_maskz_loadu_ps(first_lanes(angles), cos_sin + 2 * i);
    const __m512 high = angles <= kLanes
                            ? _mm512_setzero_ps()
                            : _mm512_maskz_loadu_ps(first_lanes(angles - kLanes), cos_sin + 2 * i + kLanes);
    const __m512 cosine = _mm512_permutex2var_ps(low, even, high);
    const __m512 sine = _mm512_permutex2var_ps(low, odd, high);
    const __m512 a = _mm512_maskz_loadu_ps(mask, x + i);
    const __m512 b = _mm512_maskz_loadu_ps(mask, x + i + half);
    _mm512_mask_storeu_ps(out + i, mask, _mm512_fmsub_ps(a, cosine, _mm512_mul_ps(b, sine)));
    _mm512_mask_storeu_ps(out + i + half, mask, _mm512_fmadd_ps(a, sine, _mm512_mul_ps(b, cosine)));
  });
}

void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out) {
  __m512 squares = _mm512_setzero_ps();
  for_each_vector(n, [&](std::size_t i, __mmask16 mask) {
    const __m512 value = _mm512_maskz_loadu_ps(mask, x + i);
    squares = _mm512_fmadd_ps(value, value, squares);
  });
  const float mean = fold_sum(squares) / static_cast<float>(n);
  const __m512 inverse = _mm512_set1_ps(1.0f / __builtin_sqrtf(mean + eps));
  if (weight == nullptr) {
    map(x, n, out, [inverse](__m512 value) { return _mm512_mul_ps(value, inverse); });
  } else {
    map(x, weight, n, out,
        [inverse](__m512 value, __m512 w) { return _mm512_mul_ps(_mm512_mul_ps(value, inverse), w); });
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n,
                float* out) {
  __m512 sums = _mm512_setzero_ps();
  for_each_vector(n, [&](std::size_t i, __mmask16 mask) {
    sums = _mm512_add_ps(sums, _mm512_maskz_loadu_ps(mask, x + i));
  });
  const __m512 mean = _mm512_set1_ps(fold_sum(sums) / static_cast<float>(n));
  __m512 squares = _mm512_setzero_ps();
  for_each_vector(n, [&](std::size_t i, __mmask16 mask) {
    const __m512 distance = _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, x + i), mean);
    squares = _mm512_fmadd_ps(distance, distance, squares);
  });
  const float variance = fold_sum(squares) / static_cast<float>(n);
  const __m512 inverse = _mm512_set1_ps(1.0f / __builtin_sqrtf(variance + eps));
  for_each_vector(n, [&](std::size_t i, __mmask16 mask) {
    const __m512 distance = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), mean);
    __m512 value = _mm512_mul_ps(distance, inverse);
    if (weight != nullptr) {
      const __m512 factors = _mm512_maskz_loadu_ps(mask, weight + i);
      value = bias == nullptr ? _mm512_mul_ps(value, factors)
                              : _mm512_fmadd_ps(value, factors, _mm512_maskz_loadu_ps(mask, bias + i));
    }
    _mm512_mask_storeu_ps(out + i, mask, value);
  });
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
  map(a, b, n, out, [](__m512 left, __m512 right) { return _mm512_add_ps(left, right); });
}

void multiply(const float* a, const float* b, std::size_t n, float* out) {
  map(a, b, n, out, [](__m512 left, __m512 right) { return _mm512_mul_ps(left, right); });
}

void scale(const float* x, float factor, std::size_t n, float* out) {
  map(x, n, out, [factor](__m512 value) { return _mm512_mul_ps(value, _mm512_set1_ps(factor)); });
}

void gate(GatedActivation activation, const float* gate, const float* up, std::size_t n, float* out) {
  with_activation(activation, [&](auto function) {
    map(gate, up, n, out, [function](__m512 g, __m512 u) { return _mm512_mul_ps(function(g), u); });
  });
}

void activate(GatedActivation activation, const float* x, std::size_t n, float* out) {
  with_activation(activation, [&](auto function) { map(x, n, out, function); });
}

void soft_cap(const float* x, float cap, std::size_t n, float* out) {
  const __m512 limit = _mm512_set1_ps(cap);
  map(x, n, out, [limit](__m512 value) { return _mm512_mul_ps(limit, tanh(_mm512_div_ps(value, limit))); });
}

void clamp(const float* x, float low, float high, std::size_t n, float* out) {
  const __m512 bottom = _mm512_set1_ps(low);
  const __m512 top = _mm512_set1_ps(high);
  map(x, n, out, [=](__m512 value) { return _mm512_min_ps(top, _mm512_max_ps(bottom, value)); });
}

void softmax(const float* x, std::size_t n, float* out) {
  __m512 maxima = _mm512_set1_ps(-__builtin_inff());
  for_each_vector(n, [&](std::size_t i, __mmask16 mask) {
    maxima = _mm512_mask_max_ps(maxima, mask, maxima, _mm512_maskz_loadu_ps(mask, x + i));
  });
  const __m512 max = _mm512_set1_ps(fold_max(maxima));
  __m512 sums = _mm512_setzero_ps();
  for_each_vector(n, [&](std::size_t i, __mmask16 mask) {
    const __m512 value = exp(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), max));
    _mm512_mask_storeu_ps(out + i, mask, value);
    sums = _mm512_mask_add_ps(sums, mask, sums, value);
  });
  const __m512 sum = _mm512_set1_ps(fold_sum(sums));
  map(out, n, out, [sum](__m512 value) { return _mm512_div_ps(value, sum); });
}

void sigmoid(const float* x, std::size_t n, float* out) {
  map(x, n, out, [](__m512 value) { return avx512::sigmoid(value); });
}

void accumulate(float factor, const float* x, std::size_t n, float* acc) {
  const __m512 broadcast = _mm512_set1_ps(factor);
  map(x, acc, n, acc,
      [broadcast](__m512 value, __m512 sum) { return _mm512_fmadd_ps(broadcast, value, sum); });
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

}  // namespace quipu::cpu::avx512
