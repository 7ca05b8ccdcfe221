// The K formats and IQ4_XS: 256 elements in runs of 16 or 32, each run with an integer scale (and minimum),
// the block with one or two halves that turn those into floats. Decoding rounds at most once: half * 6-bit
// scale * quant fits 24 bits.
//
// Encoding: each run gets the scale (and offset) that suits it (fit.h); these are rounded to integers against
// the block's halves, looking one step to each side; then the halves are fitted to the integers so found, and
// the rounding repeats. The best of the rounds is kept.
#include "base/half.h"
#include "quant/codec.h"
#include "quant/fit.h"

namespace quipu::quant {
namespace {

using Samples256 = Samples<256>;

constexpr int kRounds = 3;
constexpr int kSteps[] = {0, -1, 1};  // from the nearest integer scale; it comes first, so that it wins a tie

template <typename B>
constexpr std::size_t kRuns = B::kElements / B::kRun;

template <typename B>
Weighted<B::kRun> run_of(const Samples256& in, std::size_t j) {
  return {std::span(in.x).subspan(j * B::kRun).template first<B::kRun>(),
          std::span(in.w).subspan(j * B::kRun).template first<B::kRun>()};
}

int nearest_int(double value, int low, int high) {
  return static_cast<int>(nearest(value, {static_cast<double>(low), static_cast<double>(high)}));
}

// value = d * scale * (q - kZeroPoint), or d * scale * kValues[q]; scale of either sign
template <typename B>
struct KScaleCodec {
  using Block = B;
  using Scales = std::array<std::int8_t, kRuns<B>>;
  static constexpr auto kRange = value_range<B>();

  struct Choice {
    Half d = 0;
    Scales scales{};
    double error = HUGE_VAL;
  };

  static void decode(const Block& block, std::span<float, 256> out) {
    const float d = f16_to_f32(block.d);
    const Quants256 quants = unpack_quants(block);
    const Scales scales = unpack_scales(block);
    for (std::size_t i = 0; i < 256; ++i) {
      const float scale = d * static_cast<float>(scales[i / B::kRun]);
      out[i] = scale * static_cast<float>(value_of<B>(quants[i]));
    }
  }

  static Block encode(const Samples256& in) {
    std::array<double, kRuns<B>> ideal;
    double peak = 0;
    for (std::size_t j = 0; j < kRuns<B>; ++j) {
      ideal[j] = fit_scale(run_of<B>(in, j), kRange);
      if (std::abs(ideal[j]) > std::abs(peak)) peak = ideal[j];
    }
    Choice best;
    Half d = scale_half(peak / B::kScaleLow);
    for (int round = 0; round < kRounds; ++round) {
      const Choice choice = choose_scales(in, ideal, d);
      if (choice.error < best.error) best = choice;
      d = refit(in, choice);
      if (d == choice.d) break;
    }
    return pack(in, best);
  }

  static Choice choose_scales(const Samples256& in, const std::array<double, kRuns<B>>& ideal, Half d) {
    Choice choice{d, {}, 0};
    for (std::size_t j = 0; j < kRuns<B>; ++j) {
      const int middle = nearest_int(ideal[j] * inverse_scale(half_value(d)), B::kScaleLow, B::kScaleHigh);
      double best = HUGE_VAL;
      for (const int step : kSteps) {
        const int scale = middle + step;
        if (scale < B::kScaleLow || scale > B::kScaleHigh) continue;
        const double error = squared_error(run_of<B>(in, j), {half_value(d) * scale, 0}, kRange);
        if (error < best) {
          best = error;
          choice.scales[j] = static_cast<std::int8_t>(scale);
        }
      }
      choice.error += best;
    }
    return choice;
  }

  // The half that suits the integers of `choice` best.
  static Half refit(const Samples256& in, const Choice& choice) {
    double xq = 0;
    double qq = 0;
    for (std::size_t i = 0; i < 256; ++i) {
      const double scale = choice.scales[i / B::kRun];
      const double q = scale * nearest(in.x[i] * inverse_scale(half_value(choice.d) * scale), kRange);
      xq += in.w[i] * in.x[i] * q;
      qq += in.w[i] * q * q;
    }
    return qq > 0 ? scale_half(xq / qq) : choice.d;
  }

  static Block pack(const Samples256& in, const Choice& choice) {
    Quants256 quants;
    for (std::size_t j = 0; j < kRuns<B>; ++j) {
      const LinearFit fit{half_value(choice.d) * choice.scales[j], 0};
      quantize(run_of<B>(in, j).x, fit, kRange, zero_point<B>(), quants.data() + j * B::kRun);
    }
    Block block{};
    block.d = choice.d;
    pack_scales(choice.scales, block);
    pack_quants(quants, block);
    return block;
  }
};

// value = d * scale * q - dmin * min
template <typename B>
struct KScaleMinCodec {
  using Block = B;
  using Scales = std::array<SubScale, kRuns<B>>;
  using Fits = std::array<LinearFit, kRuns<B>>;
  static constexpr QuantRange kRange{0, B::kQuantMax};

  struct Choice {
    Half d = 0;
    Half dmin = 0;
    Scales scales{};
    double error = HUGE_VAL;

    LinearFit fit(SubScale of) const { return {half_value(d) * of.scale, -half_value(dmin) * of.min}; }
  };

  static void decode(const Block& block, std::span<float, 256> out) {
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    const Quants256 quants = unpack_quants(block);
    const Scales scales = unpack_scales(block);
    for (std::size_t i = 0; i < 256; ++i) {
      const SubScale of = scales[i / B::kRun];
      out[i] = d * static_cast<float>(of.scale) * static_cast<float>(quants[i]) -
               dmin * static_cast<float>(of.min);
    }
  }

  static Block encode(const Samples256& in) {
    Fits ideal;
    double most_scale = 0;
    double most_min = 0;
    for (std::size_t j = 0; j < kRuns<B>; ++j) {
      ideal[j] = fit_scale_offset<B::kRun, OffsetRule::not_positive>(run_of<B>(in, j), B::kQuantMax);
      most_scale = std::max(most_scale, ideal[j].scale);
      most_min = std::max(most_min, -ideal[j].offset);
    }
    Choice best;
    Choice choice;
    choice.d = scale_half(most_scale / B::kScaleMax);
    choice.dmin = scale_half(most_min / B::kScaleMax);
    for (int round = 0; round < kRounds; ++round) {
      choose_scales(in, ideal, choice);
      if (choice.error < best.error) best = choice;
      if (!refit(in, choice)) break;
    }
    return pack(in, best);
  }

  static void choose_scales(const Samples256& in, const Fits& ideal, Choice& choice) {
    const double inverse = inverse_scale(half_value(choice.d));
    const double inverse_min = inverse_scale(half_value(choice.dmin));
    choice.error = 0;
    for (std::size_t j = 0; j < kRuns<B>; ++j) {
      const int scale = nearest_int(ideal[j].scale * inverse, 0, B::kScaleMax);
      const int min = nearest_int(-ideal[j].offset * inverse_min, 0, B::kScaleMax);
      double best = HUGE_VAL;
      for (const int step : kSteps) {
        for (const int min_step : kSteps) {
          const int s = scale + step;
          const int m = min + min_step;
          if (s < 0 || s > B::kScaleMax || m < 0 || m > B::kScaleMax) continue;
          const SubScale candidate{static_cast<std::uint8_t>(s), static_cast<std::uint8_t>(m)};
          const double error = squared_error(run_of<B>(in, j), choice.fit(candidate), kRange);
          if (error < best) {
            best = error;
            choice.scales[j] = candidate;
          }
        }
      }
      choice.error += best;
    }
  }

  // Sets d and dmin to the pair that suits the integers of `choice` best; false if that changes nothing.
  static bool refit(const Samples256& in, Choice& choice) {
    double qq = 0, mm = 0, qm = 0, xq = 0, xm = 0;
    for (std::size_t j = 0; j < kRuns<B>; ++j) {
      const Weighted<B::kRun> run = run_of<B>(in, j);
      const LinearFit fit = choice.fit(choice.scales[j]);
      const double inverse = inverse_scale(fit.scale);
      const double m = -static_cast<double>(choice.scales[j].min);
      for (std::size_t i = 0; i < B::kRun; ++i) {
        const double q = choice.scales[j].scale * nearest((run.x[i] - fit.offset) * inverse, kRange);
        qq += run.w[i] * q * q;
        mm += run.w[i] * m * m;
        qm += run.w[i] * q * m;
        xq += run.w[i] * run.x[i] * q;
        xm += run.w[i] * run.x[i] * m;
      }
    }
    double d = qq > 0 ? xq / qq : 0;
    double dmin = mm > 0 ? xm / mm : 0;
    if (const double determinant = qq * mm - qm * qm; determinant > 1e-9 * qq * mm) {
      d = (xq * mm - xm * qm) / determinant;
      dmin = (xm * qq - xq * qm) / determinant;
    }
    if (d < 0 || dmin < 0) return false;
    const Half d_half = scale_half(d);
    const Half dmin_half = scale_half(dmin);
    if (d_half == choice.d && dmin_half == choice.dmin) return false;
    choice.d = d_half;
    choice.dmin = dmin_half;
    return true;
  }

  static Block pack(const Samples256& in, const Choice& choice) {
    Quants256 quants;
    for (std::size_t j = 0; j < kRuns<B>; ++j) {
      quantize(run_of<B>(in, j).x, choice.fit(choice.scales[j]), kRange, 0, quants.data() + j * B::kRun);
    }
    Block block{};
    block.d = choice.d;
    block.dmin = choice.dmin;
    pack_scales(choice.scales, block);
    pack_quants(quants, block);
    return block;
  }
};

constexpr RowCodec kQ2_K = block_codec<KScaleMinCodec<BlockQ2_K>>();
constexpr RowCodec kQ3_K = block_codec<KScaleCodec<BlockQ3_K>>();
constexpr RowCodec kQ4_K = block_codec<KScaleMinCodec<BlockQ4_K>>();
constexpr RowCodec kQ5_K = block_codec<KScaleMinCodec<BlockQ5_K>>();
constexpr RowCodec kQ6_K = block_codec<KScaleCodec<BlockQ6_K>>();
constexpr RowCodec kIQ4_XS = block_codec<KScaleCodec<BlockIQ4_XS>>();

}  // namespace

const RowCodec* k_codec(ElementType type) {
  switch (type) {
    case ElementType::q2_k: return &kQ2_K;
    case ElementType::q3_k: return &kQ3_K;
    case ElementType::q4_k: return &kQ4_K;
    case ElementType::q5_k: return &kQ5_K;
    case ElementType::q6_k: return &kQ6_K;
    case ElementType::iq4_xs: return &kIQ4_XS;
    default: return nullptr;
  }
}

}  // namespace quipu::quant
