// MXFP4 and NVFP4: floats of 4 bits with a scale of 8 for each block or run. Encoding tries the codes of
// scales around the one that brings the largest element to the largest float, and keeps the one with the
// smallest squared error.
#include <algorithm>
#include <cmath>

#include "quant/codec.h"
#include "quant/fit.h"

namespace quipu::quant {
namespace {

constexpr double kLargest = 12;  // of the doubled values

/// The code of the nearest value; of two equally near the one nearer to zero.
std::uint8_t fp4_code(double x) {
  const double size = std::abs(x);
  unsigned code = 0;
  for (unsigned i = 0; i < 7; ++i) code += size > 0.5 * (kFp4Values[i] + kFp4Values[i + 1]) ? 1 : 0;
  return static_cast<std::uint8_t>(x < 0 && code > 0 ? code + 8 : code);
}

/// Of the codes [middle - around, middle + around] within [0, last] that with the smallest squared error.
template <std::size_t N>
std::uint8_t best_scale(const Weighted<N>& in, int middle, int around, int last,
                        float (*value)(std::uint8_t)) {
  std::uint8_t best = 0;
  double best_error = HUGE_VAL;
  for (int code = std::max(middle - around, 0); code <= std::min(middle + around, last); ++code) {
    const double scale = value(static_cast<std::uint8_t>(code));
    const double inverse = inverse_scale(scale);
    double error = 0;
    for (std::size_t i = 0; i < N; ++i) {
      const double difference = in.x[i] - scale * kFp4Values[fp4_code(in.x[i] * inverse)];
      error += in.w[i] * difference * difference;
    }
    if (error < best_error) {
      best_error = error;
      best = static_cast<std::uint8_t>(code);
    }
  }
  return best;
}

template <std::size_t N>
void quantize(const Weighted<N>& in, double scale, std::uint8_t* quants) {
  const double inverse = inverse_scale(scale);
  for (std::size_t i = 0; i < N; ++i) quants[i] = fp4_code(in.x[i] * inverse);
}

struct MXFP4Codec {
  using Block = BlockMXFP4;
  static constexpr int kLastScale = 252;  // beyond it the largest value is infinite

  static void decode(const Block& block, std::span<float, 32> out) {
    const float scale = mxfp4_scale(block.scale);
    const Quants32 quants = unpack_quants(block);
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(kFp4Values[quants[i]]) * scale;
  }

  static Block encode(const Samples<32>& in) {
    const Weighted<32> weighted{in.x, in.w};
    Block block{};
    const double ideal = std::abs(peak_of(weighted)) / kLargest;
    const int middle = ideal == 0 ? 0 : std::clamp(std::ilogb(ideal) + 128, 0, kLastScale);
    block.scale = best_scale(weighted, middle, 1, kLastScale, mxfp4_scale);
    Quants32 quants;
    quantize(weighted, mxfp4_scale(block.scale), quants.data());
    pack_quants(quants, block);
    return block;
  }
};

struct NVFP4Codec {
  using Block = BlockNVFP4;
  static constexpr int kLastScale = 126;

  static void decode(const Block& block, std::span<float, 64> out) {
    const Quants64 quants = unpack_quants(block);
    for (std::size_t i = 0; i < 64; ++i) {
      out[i] = static_cast<float>(kFp4Values[quants[i]]) * nvfp4_scale(block.scales[i / Block::kRun]);
    }
  }

  static Block encode(const Samples<64>& in) {
    Block block{};
    Quants64 quants;
    for (std::size_t j = 0; j < block.scales.size(); ++j) {
      const std::size_t at = j * Block::kRun;
      const Weighted<16> run{std::span(in.x).subspan(at).first<16>(),
                             std::span(in.w).subspan(at).first<16>()};
      const double ideal = std::abs(peak_of(run)) / kLargest;
      int middle = 0;
      while (middle < kLastScale && nvfp4_scale(static_cast<std::uint8_t>(middle)) < ideal) ++middle;
      block.scales[j] = best_scale(run, middle, 6, kLastScale, nvfp4_scale);
      quantize(run, nvfp4_scale(block.scales[j]), quants.data() + at);
    }
    pack_quants(quants, block);
    return block;
  }
};

constexpr RowCodec kMXFP4 = block_codec<MXFP4Codec>();
constexpr RowCodec kNVFP4 = block_codec<NVFP4Codec>();

}  // namespace

const RowCodec* fp4_codec(ElementType type) {
  switch (type) {
    case ElementType::mxfp4: return &kMXFP4;
    case ElementType::nvfp4: return &kNVFP4;
    default: return nullptr;
  }
}

}  // namespace quipu::quant
