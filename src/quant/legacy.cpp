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

// value = d * (q - kZeroPoint)
template <typename B>
struct ScaleCodec {
  using Block = B;
  static constexpr QuantRange kRange{-B::kZeroPoint, B::kQuantMax - B::kZeroPoint};

  static void decode(const Block& block, std::span<float, 32> out) {
    const float d = f16_to_f32(block.d);
    const Quants32 quants = unpack_quants(block);
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(quants[i] - B::kZeroPoint) * d;
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
    quantize<32>(in.x, {half_value(block.d), 0}, kRange, B::kZeroPoint, quants.data());
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

/// value = d * kValues[q]
struct IQ4_NLCodec {
  using Block = BlockIQ4_NL;

  static void decode(const Block& block, std::span<float, 32> out) {
    const float d = f16_to_f32(block.d);
    const Quants32 quants = unpack_quants(block);
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(Block::kValues[quants[i]]) * d;
  }

  static Block encode(const Samples32& in) {
    Block block{};
    double best_error = HUGE_VAL;
    for (const std::uint16_t d : with_neighbours(scale_half(fit_table_scale(in)))) {
      const double inverse = inverse_scale(half_value(d));
      double error = 0;
      for (std::size_t i = 0; i < 32; ++i) {
        const double difference = in.x[i] - half_value(d) * value_of(in.x[i] * inverse);
        error += in.w[i] * difference * difference;
      }
      if (error < best_error) {
        best_error = error;
        block.d = d;
      }
    }
    Quants32 quants;
    const double inverse = inverse_scale(half_value(block.d));
    for (std::size_t i = 0; i < 32; ++i) quants[i] = nearest_quant(in.x[i] * inverse);
    pack_quants(quants, block);
    return block;
  }

 private:
  /// Of two values equally near, the lower.
  static std::uint8_t nearest_quant(double x) {
    unsigned q = 0;
    for (unsigned i = 0; i + 1 < Block::kValues.size(); ++i) {
      q += x > 0.5 * (Block::kValues[i] + Block::kValues[i + 1]) ? 1 : 0;
    }
    return static_cast<std::uint8_t>(q);
  }
  static double value_of(double x) { return Block::kValues[nearest_quant(x)]; }

  /// As fit_scale, for the values of the table; the largest element may go to either end.
  static double fit_table_scale(const Samples32& in) {
    double peak = 0;
    for (const double x : in.x) peak = std::abs(x) > std::abs(peak) ? x : peak;
    if (peak == 0) return 0;
    double best_scale = 0;
    double best_gain = 0;
    const auto try_inverse = [&](double inverse) {
      double xv = 0;
      double vv = 0;
      for (std::size_t i = 0; i < 32; ++i) {
        const double v = value_of(in.x[i] * inverse);
        xv += in.w[i] * in.x[i] * v;
        vv += in.w[i] * v * v;
      }
      if (xv * xv > best_gain * vv) {
        best_gain = xv * xv / vv;
        best_scale = xv / vv;
      }
    };
    for (const double end : {-127.0, 113.0}) {
      for (int step = -6; step <= 6; step += 3) try_inverse((end + step) / peak);
    }
    for (int round = 0; round < 2; ++round) try_inverse(inverse_scale(best_scale));
    return best_scale;
  }
};

constexpr RowCodec kQ4_0 = block_codec<ScaleCodec<BlockQ4_0>>();
constexpr RowCodec kQ4_1 = block_codec<ScaleMinCodec<BlockQ4_1>>();
constexpr RowCodec kQ5_0 = block_codec<ScaleCodec<BlockQ5_0>>();
constexpr RowCodec kQ5_1 = block_codec<ScaleMinCodec<BlockQ5_1>>();
constexpr RowCodec kQ8_0 = block_codec<Q8_0Codec>();
constexpr RowCodec kIQ4_NL = block_codec<IQ4_NLCodec>();

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
