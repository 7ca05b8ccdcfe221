// The formats of 32 elements: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL. Decoding rounds at most once (the
// products of a half and a small integer are exact), encoding searches scales as fit.h says; Q8_0 takes its
// scale from the largest element.
#include "base/half.h"
#include "quant/codec.h"
#include "quant/fit.h"

namespace quipu::quant {
namespace {

using Samples32 = Samples<32>;

Weighted<32> weighted(const Samples32& in) {
  return {in.x, in.w};
}

// value = d * (q - kZeroPoint), or d * kValues[q]
template <typename B>
struct ScaleCodec {
  using Block = B;
  static constexpr auto kRange = value_range<B>();

  static void decode(const Block& block, std::span<float, 32> out) {
    const float d = f16_to_f32(block.d);
    const Quants32 quants = unpack_quants(block);
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(value_of<B>(quants[i])) * d;
  }

  static Block encode(const Samples32& in) {
    Block block{};
    double best_error = HUGE_VAL;
    for (const std::uint16_t d : with_neighbours(scale_half(fit_scale(weighted(in), kRange)))) {
      const double error = squared_error(weighted(in), {half_value(d), 0}, kRange);
      if (error < best_error) {
        best_error = error;
        block.d = d;
      }
    }
    Quants32 quants;
    quantize<32>(in.x, {half_value(block.d), 0}, kRange, zero_point<B>(), quants.data());
    pack_quants(quants, block);
    return block;
  }
};

// value = d * q + m
template <typename B>
struct ScaleMinCodec {
  using Block = B;
  static constexpr QuantRange kRange{0, B::kQuantMax};

  static void decode(const Block& block, std::span<float, 32> out) {
    const float d = f16_to_f32(block.d);
    const float m = f16_to_f32(block.m);
    const Quants32 quants = unpack_quants(block);
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(quants[i]) * d + m;
  }

  static Block encode(const Samples32& in) {
    const LinearFit fit = fit_scale_offset<32, OffsetRule::any>(weighted(in), B::kQuantMax);
    Block block{};
    double best_error = HUGE_VAL;
    for (const std::uint16_t m : with_neighbours(finite_half(fit.offset))) {
      for (const std::uint16_t d : with_neighbours(scale_half(fit.scale))) {
        const double error = squared_error(weighted(in), {half_value(d), half_value(m)}, kRange);
        if (error < best_error) {
          best_error = error;
          block.d = d;
          block.m = m;
        }
      }
    }
    Quants32 quants;
    quantize<32>(in.x, {half_value(block.d), half_value(block.m)}, kRange, 0, quants.data());
    pack_quants(quants, block);
    return block;
  }
};

// value = d * q, with 127 for the largest element
struct Q8_0Codec {
  using Block = BlockQ8_0;
  static constexpr QuantRange kRange{-127, 127};

  static void decode(const Block& block, std::span<float, 32> out) {
    const float d = f16_to_f32(block.d);
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(block.qs[i]) * d;
  }

  static Block encode(const Samples32& in) {
    double peak = 0;
    for (const double x : in.x) peak = std::max(peak, std::abs(x));
    Block block{};
    block.d = scale_half(peak / kRange.high);
    const double inverse = inverse_scale(half_value(block.d));
    for (std::size_t i = 0; i < 32; ++i) {
      block.qs[i] = static_cast<std::int8_t>(nearest(in.x[i] * inverse, kRange));
    }
    return block;
  }
};

constexpr RowCodec kQ4_0 = block_codec<ScaleCodec<BlockQ4_0>>();
constexpr RowCodec kQ4_1 = block_codec<ScaleMinCodec<BlockQ4_1>>();
constexpr RowCodec kQ5_0 = block_codec<ScaleCodec<BlockQ5_0>>();
constexpr RowCodec kQ5_1 = block_codec<ScaleMinCodec<BlockQ5_1>>();
constexpr RowCodec kQ8_0 = block_codec<Q8_0Codec>();
constexpr RowCodec kIQ4_NL = block_codec<ScaleCodec<BlockIQ4_NL>>();

}  // namespace

const RowCodec* legacy_codec(ElementType type) {
  switch (type) {
    case ElementType::q4_0: return &kQ4_0;
    case ElementType::q4_1: return &kQ4_1;
    case ElementType::q5_0: return &kQ5_0;
    case ElementType::q5_1: return &kQ5_1;
    case ElementType::q8_0: return &kQ8_0;
    case ElementType::iq4_nl: return &kIQ4_NL;
    default: return nullptr;
  }
}

}  // namespace quipu::quant
