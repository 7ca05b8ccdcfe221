// Rotary position embedding. Su et al. 2021, "RoFormer". The angles of a micro-batch are computed once for
// all layers that rotate alike; linear, YaRN and frequency-factor scaling are all a choice of frequencies and
// one magnitude.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace quipu {

struct RopeAnglesParams {
  std::vector<double> frequencies;  ///< radians per position for each pair
  float magnitude;                  ///< factor on sine and cosine
};

/// cos and sin of position * frequency, times magnitude. positions: i32 [n_tokens] -> [n_tokens, n_pairs, 2]
extern const Operation kRopeAngles;
Value rope_angles(Value positions, RopeAnglesParams params);

struct PositionTemperatureParams {
  float scale;
  std::uint32_t length;
  float offset;
};
/// log(floor((position + offset) / length) + 1) * scale + 1, a factor for the scores of the query at a
/// position. positions: i32 [n_tokens] -> [n_tokens, 1]. Meta AI 2025, Llama 4.
extern const Operation kPositionTemperature;
Value position_temperature(Value positions, const PositionTemperatureParams& params);

/// Which elements of a head form a pair.
enum class RopeStyle : std::uint8_t {
  interleaved,  ///< (2i, 2i + 1)
  halves,       ///< (i, i + n_pairs)
};
struct RopeParams {
  RopeStyle style;
};

/// Rotates the first 2 * n_pairs elements of each head. x: [n_tokens, heads, head_dim]; same shape.
extern const Operation kRope;
Value rope(Value x, Value angles, RopeStyle style);

}  // namespace quipu
