// The contract between the CPU backend and its kernels: one table of functions per instruction set. All
// tables give the same bits for integer weight types; the scalar one is the reference that the others are
// tested against.
//
// Canonical arithmetic, which every implementation follows to the bit (docs/architecture.md, "Determinism"):
// one accumulator per output element, K ascending and never split; inside a quantization block everything is
// int32; one fused multiply-add per block; a row's result never depends on which or how many other rows are
// computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/element_type.h"

namespace quipu::cpu {

/// Rows of a weight matrix that share a panel: one 512-bit register of results.
inline constexpr std::size_t kPanelRows = 16;

/// How a matrix product wants its input rows. See kernels/activation.h for the byte layout.
enum class ActivationFormat : std::uint8_t {
  f32,     ///< floats as they are
  bf16,    ///< rounded to bfloat16, pairs of k together; an odd tail is padded with zero
  q8_32,   ///< int8 with one float scale for each block of 32, and int32 sums of it and its first half
  q8_256,  ///< int8 with one float scale per block of 256 and the sums of each 16 and 32
};

/// out[t, r] = sum over k of weight[r, k] * activation[t, k], for the rows of `n_panels` panels.
struct MatmulTask {
  const std::byte* panels;   ///< first panel (packed by PackedMatrix)
  std::size_t panel_stride;  ///< bytes from one panel to the next
  std::size_t n_rows;        ///< rows to write; the last panel may hold fewer than 16
  std::size_t n_cols;
  const std::byte* activations;   ///< rows in the kernel's ActivationFormat
  std::size_t activation_stride;  ///< bytes from one token's row to the next
  std::size_t n_tokens;           ///< any number, also 0
  float* out;                     ///< out[t * out_stride + r]
  std::size_t out_stride;         ///< in floats
};
using MatmulKernel = void (*)(const MatmulTask&);

/// Turns a row of `n_cols` floats into a format's bytes (activation_row_bytes of them).
using QuantizeKernel = void (*)(const float* x, std::size_t n_cols, std::byte* out);

/// As Activation of graph/ops/elementwise.h.
enum class GatedActivation : std::uint8_t {
  silu,
  gelu_tanh,
  gelu_quick,
  relu,
  relu_squared,
  sigmoid,
  softplus
};

/// The factor of gelu_quick.
inline constexpr float kGeluQuick = 1.702f;

/// Visible cells of one head group for a block of queries; the layout of the cache is in kernels/kv_layout.h.
struct AttentionTask;
struct KvLayout;

struct KernelTable {
  std::string_view name;  ///< by which QUIPU_CPU asks for it

  MatmulKernel (*matmul)(ElementType type);             ///< never null for a decodable type
  QuantizeKernel (*quantize)(ActivationFormat format);  ///< null for f32

  /// out = x / sqrt(mean(x^2) + eps) * weight; the sum of squares in 16 interleaved partial sums. `weight`
  /// may be null (all ones); out may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, std::size_t n, float* out);
  /// out = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias; sums as in rms_norm, the last
  /// two steps fused. `weight` and `bias` may be null, the bias only with a weight at hand; out may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, std::size_t n,
                     float* out);
  /// Rotates pairs by the angles of `cos_sin` ([n_rot / 2][2], magnitude included); elements past n_rot are
  /// copied. Interleaved pairs (2i, 2i+1), or halves (i, i + n_rot/2) where `halves`. out may be x.
  void (*rope)(const float* x, const float* cos_sin, std::size_t n_rot, bool halves, std::size_t n,
               float* out);
  /// out = a + b; out may be a or b.
  void (*add)(const float* a, const float* b, std::size_t n, float* out);
  /// out = a * b; out may be a or b.
  void (*multiply)(const float* a, const float* b, std::size_t n, float* out);
  /// out = x * factor; out may be x.
  void (*scale)(const float* x, float factor, std::size_t n, float* out);
  /// out = activation(gate) * up.
  void (*gate)(GatedActivation activation, const float* gate, const float* up, std::size_t n, float* out);
  /// out = activation(x); out may be x.
  void (*activate)(GatedActivation activation, const float* x, std::size_t n, float* out);
  /// out = cap * tanh(x / cap).
  void (*soft_cap)(const float* x, float cap, std::size_t n, float* out);
  /// out = the nearest number of [low, high]; NaN stays.
  void (*clamp)(const float* x, float low, float high, std::size_t n, float* out);
  /// out = exp(x - max) / sum; the sum in 16 interleaved partial sums.
  void (*softmax)(const float* x, std::size_t n, float* out);
  /// out = 1 / (1 + exp(-x)).
  void (*sigmoid)(const float* x, std::size_t n, float* out);
  /// acc = fma(factor, x, acc).
  void (*accumulate)(float factor, const float* x, std::size_t n, float* acc);

  void (*attention)(const AttentionTask&);
  /// The work of store_cell() of kernels/kv_layout.h, which callers use.
  void (*store_cell)(const KvLayout&, std::byte* page, std::size_t slot, const float* k, const float* v);
  /// The work of encode_finite() of kernels/kv_layout.h, with the same bytes.
  void (*encode_cells)(ElementType type, const float* x, std::size_t n, std::byte* out);
};

/// The table for this processor: the best that it supports, or the one that the environment variable
/// QUIPU_CPU names. A name that is unknown or that the processor cannot run is Error(unsupported).
const KernelTable& kernels();

/// The reference.
const KernelTable& scalar_kernels();

}  // namespace quipu::cpu
