#include "model/arch/blocks/position_bias.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/math.h"

namespace quipu {
namespace {

/// From this distance on all keys are in one bucket.
constexpr std::int32_t kFarthest = 128;

AttentionBias relative_bias(const Hparams& hparams, const LayerScope& layer) {
  const auto& layers = layer.is_encoder && !hparams.encoder_layers.empty()
                           ? layer.model.weights.encoder_layers
                           : layer.model.weights.layers;
  const Weight* own = layer.weights.attention.relative_bias;
  const Weight* weight = own != nullptr ? own : layers.front().attention.relative_bias;
  QUIPU_CHECK(weight != nullptr);
  const std::vector<float> table = read_numbers(*weight);  // [buckets, heads]
  const std::size_t n_heads = layer.hparams.n_heads;
  AttentionBias bias{.kind = AttentionBias::Kind::relative, .values = {}, .radius = kFarthest};
  bias.values.reserve(n_heads * (2 * kFarthest + 1));
  for (std::size_t head = 0; head < n_heads; ++head) {
    for (std::int32_t distance = -kFarthest; distance <= kFarthest; ++distance) {
      const std::size_t bucket = relative_bucket(distance, hparams.n_position_buckets, layer.is_encoder);
      bias.values.push_back(table[bucket * n_heads + head]);
    }
  }
  return bias;
}

}  // namespace

AttentionBias position_bias(const Hparams& hparams, const LayerScope& layer) {
  switch (layer.model.arch.attention.positions) {
    case PositionKind::none: return {};
    case PositionKind::relative: return relative_bias(hparams, layer);
    case PositionKind::rotation:
    case PositionKind::alibi: break;
  }
  if (hparams.max_alibi_bias == 0) return {};
  return {.kind = AttentionBias::Kind::alibi,
          .values = alibi_slopes(layer.hparams.n_heads, hparams.max_alibi_bias)};
}

std::vector<float> alibi_slopes(std::size_t n_heads, float max_bias) {
  const std::size_t n = std::bit_floor(n_heads);
  std::vector<float> slopes(n_heads);
  for (std::size_t head = 0; head < n_heads; ++head) {
    const double power = head < n ? static_cast<double>(head + 1) : static_cast<double>(head - n) + 0.5;
    slopes[head] = static_cast<float>(exact_math::pow(2, -max_bias * power / static_cast<double>(n)));
  }
  return slopes;
}

std::size_t relative_bucket(std::int32_t distance, std::size_t n_buckets, bool both_ways) {
  const std::size_t per_side = both_ways ? n_buckets / 2 : n_buckets;
  const std::size_t n_exact = per_side / 2;
  const std::size_t side = both_ways && distance > 0 ? per_side : 0;
  const auto magnitude = static_cast<std::size_t>(both_ways ? std::abs(distance) : std::max(0, -distance));
  if (magnitude < n_exact) return side + magnitude;
  const double exact = static_cast<double>(n_exact);
  const double way =
      exact_math::log(static_cast<double>(magnitude) / exact) / exact_math::log(kFarthest / exact);
  const auto bucket =
      static_cast<std::size_t>(std::floor(exact + way * static_cast<double>(per_side - n_exact)));
  return side + std::min(bucket, per_side - 1);
}

}  // namespace quipu
