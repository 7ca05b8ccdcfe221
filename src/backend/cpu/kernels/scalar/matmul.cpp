// The reference of matrix products: one row of weights at a time, taken out of its panel, against every
// token. It defines the arithmetic; other instruction sets give the same bits.
#include "backend/cpu/kernels/instruction_sets.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/panel.h"
#include "base/half.h"
#include "quant/blocks.h"

namespace quipu::cpu::scalar {
namespace {

const std::byte* panel_of(const MatmulTask& task, std::size_t row) {
  return task.panels + row / kPanelRows * task.panel_stride;
}

const std::byte* token_of(const MatmulTask& task, std::size_t token) {
  return task.activations + token * task.activation_stride;
}

template <typename T>
T load(const std::byte* from, std::size_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}

// ---- Floats: one chain of fused multiply-adds, k ascending
// ---------------------------------------------------

float weight_f32(const std::byte* panel, std::size_t k, std::size_t lane) {
  return load<float>(panel, k * kPanelRows + lane);
}

float weight_f16(const std::byte* panel, std::size_t k, std::size_t lane) {
  return f16_to_f32(load<std::uint16_t>(panel, k * kPanelRows + lane));
}

template <float (*kWeight)(const std::byte*, std::size_t, std::size_t)>
void matmul_float(const MatmulTask& task) {
  for (std::size_t row = 0; row < task.n_rows; ++row) {
    for (std::size_t token = 0; token < task.n_tokens; ++token) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < task.n_cols; ++k) {
        sum = std::fma(kWeight(panel_of(task, row), k, row % kPanelRows),
                       load<float>(token_of(task, token), k), sum);
      }
      task.out[token * task.out_stride + row] = sum;
    }
  }
}

// ---- BF16: as the instruction vdpbf16ps does it
// ------------------------------------------------------------------ Pairs of k ascending; of a pair the odd
// k first; each a fused multiply-add, rounded to nearest even; subnormal numbers count as zero before and
// after each, whatever the thread's rounding mode says.

float flush(float value) {
  return std::fabs(value) < FLT_MIN ? std::copysign(0.0f, value) : value;
}

float add_product(float weight, float x, float sum) {
  return flush(std::fma(flush(weight), flush(x), flush(sum)));
}

void matmul_bf16(const MatmulTask& task) {
  for (std::size_t row = 0; row < task.n_rows; ++row) {
    const std::byte* panel = panel_of(task, row);
    for (std::size_t token = 0; token < task.n_tokens; ++token) {
      const std::byte* x = token_of(task, token);
      float sum = 0.0f;
      for (std::size_t k = 0; k < task.n_cols; k += 2) {  // an odd row has a zero at its end
        const std::size_t pair = (k / 2 * kPanelRows + row % kPanelRows) * 2;
        for (const std::size_t odd : {1u, 0u}) {
          sum = add_product(bf16_to_f32(load<std::uint16_t>(panel, pair + odd)),
                            bf16_to_f32(load<std::uint16_t>(x, k + odd)), sum);
        }
      }
      task.out[token * task.out_stride + row] = sum;
    }
  }
}

// ---- Block formats
// -----------------------------------------------------------------------------------------------

/// What is taken off the stored quants.
std::int32_t zero_point(ElementType type) {
  switch (type) {
    case ElementType::q4_0: return 8;
    case ElementType::q5_0: return 16;
    case ElementType::q8_0:
    case ElementType::iq4_nl:
    case ElementType::iq4_xs:
    case ElementType::mxfp4:
    case ElementType::nvfp4: return 128;
    case ElementType::q3_k: return 4;
    case ElementType::q6_k: return 32;
    default: return 0;
  }
}

/// Of types with a table its values, as a type with a zero point of 128 would store them.
void look_up(ElementType type, PanelBlockRow& w) {
  const bool is_fp4 = type == ElementType::mxfp4 || type == ElementType::nvfp4;
  if (!is_fp4 && type != ElementType::iq4_nl && type != ElementType::iq4_xs) return;
  const auto& values = is_fp4 ? kFp4Values : BlockIQ4_NL::kValues;
  for (std::uint8_t& quant : w.quants) quant = static_cast<std::uint8_t>(values[quant] + 128);
}

/// The float scale of a run of a block of 32.
float scale_of(ElementType type, const PanelBlockRow& w, std::size_t run) {
  switch (type) {
    case ElementType::mxfp4: return mxfp4_scale(static_cast<std::uint8_t>(w.scales[run]));
    case ElementType::nvfp4: return nvfp4_scale(static_cast<std::uint8_t>(w.scales[run]));
    default: return f16_to_f32(w.d);
  }
}

std::int32_t dot(const std::uint8_t* quants, std::int32_t zero, const std::int8_t* x, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += (quants[i] - zero) * x[i];
  return sum;
}

/// For each run with a float scale (the whole block but for NVFP4) acc = fma(sum of q * y, d * dy, acc), and
/// where there is a minimum acc = fma(sum of y, m * dy, acc).
float add_block32(ElementType type, const PanelBlockLayout& layout, const PanelBlockRow& w,
                  const ActivationBlock32& x, float acc) {
  const std::size_t run_length = layout.run == 0 ? 32 : layout.run;
  for (std::size_t run = 0; run < 32 / run_length; ++run) {
    const std::size_t at = run * run_length;
    const std::int32_t sum = dot(w.quants.data() + at, zero_point(type), x.quants + at, run_length);
    acc = std::fma(static_cast<float>(sum), scale_of(type, w, run) * x.scale, acc);
  }
  if (layout.m > 0) acc = std::fma(static_cast<float>(x.sum), f16_to_f32(w.m) * x.scale, acc);
  return acc;
}

/// acc = fma(sum over runs of scale * (sum of q * y), d * dy, acc), and where there are minimums
/// acc = fma(sum over runs of min * (sum of y), -(dmin * dy), acc).
float add_block256(ElementType type, const PanelBlockLayout& layout, const PanelBlockRow& w,
                   const ActivationBlock256& x, float acc) {
  std::int32_t product = 0;
  std::int32_t minimum = 0;
  for (std::size_t run = 0; run < 256 / layout.run; ++run) {
    const std::size_t at = run * layout.run;
    product += w.scales[run] * dot(w.quants.data() + at, zero_point(type), x.quants + at, layout.run);
    minimum += w.mins[run] * (layout.run == 16 ? x.sums16[run] : x.sums32[run]);
  }
  acc = std::fma(static_cast<float>(product), f16_to_f32(w.d) * x.scale, acc);
  if (layout.m > 0) acc = std::fma(static_cast<float>(minimum), -(f16_to_f32(w.m) * x.scale), acc);
  return acc;
}

template <ElementType kType>
void matmul_blocks(const MatmulTask& task) {
  const PanelBlockLayout& layout = panel_block_layout(kType);
  for (std::size_t row = 0; row < task.n_rows; ++row) {
    for (std::size_t token = 0; token < task.n_tokens; ++token)
      task.out[token * task.out_stride + row] = 0.0f;
    for (std::size_t i = 0; i < task.n_cols / layout.elements; ++i) {
      const std::byte* block = panel_of(task, row) + i * layout.bytes;
      PanelBlockRow w = read_panel_block(layout, block, row % kPanelRows);
      look_up(kType, w);
      for (std::size_t token = 0; token < task.n_tokens; ++token) {
        float& acc = task.out[token * task.out_stride + row];
        acc = layout.elements == 32
                  ? add_block32(kType, layout, w, activation_block32(token_of(task, token), i), acc)
                  : add_block256(kType, layout, w, activation_block256(token_of(task, token), i), acc);
      }
    }
  }
}

}  // namespace

MatmulKernel matmul_kernel(ElementType type) {
  switch (type) {
    case ElementType::f32: return matmul_float<weight_f32>;
    case ElementType::f16: return matmul_float<weight_f16>;
    case ElementType::bf16: return matmul_bf16;
    case ElementType::q4_0: return matmul_blocks<ElementType::q4_0>;
    case ElementType::q4_1: return matmul_blocks<ElementType::q4_1>;
    case ElementType::q5_0: return matmul_blocks<ElementType::q5_0>;
    case ElementType::q5_1: return matmul_blocks<ElementType::q5_1>;
    case ElementType::q8_0: return matmul_blocks<ElementType::q8_0>;
    case ElementType::iq4_nl: return matmul_blocks<ElementType::iq4_nl>;
    case ElementType::q2_k: return matmul_blocks<ElementType::q2_k>;
    case ElementType::q3_k: return matmul_blocks<ElementType::q3_k>;
    case ElementType::q4_k: return matmul_blocks<ElementType::q4_k>;
    case ElementType::q5_k: return matmul_blocks<ElementType::q5_k>;
    case ElementType::q6_k: return matmul_blocks<ElementType::q6_k>;
    case ElementType::iq4_xs: return matmul_blocks<ElementType::iq4_xs>;
    case ElementType::mxfp4: return matmul_blocks<ElementType::mxfp4>;
    case ElementType::nvfp4: return matmul_blocks<ElementType::nvfp4>;
    default: return nullptr;
  }
}

}  // namespace quipu::cpu::scalar
