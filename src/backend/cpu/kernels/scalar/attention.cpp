// Attention as kernels/attention.h writes it down: one query row after the other, one place after the other.
// Slow and obvious: it skips nothing but cells that do not exist.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "base/half.h"
#include "base/math.h"
#include "quant/blocks.h"
#include "quant/quant.h"

namespace quipu::cpu::scalar {
namespace {

constexpr std::size_t kLanes = 16;

/// A number of a float type.
float load_element(ElementType type, const std::byte* elements, std::size_t index) {
  float value = 0;
  decode_row(type, {elements + index * row_bytes(type, 1), row_bytes(type, 1)}, {&value, 1});
  return value;
}

/// A block of a key: value = scale * quants + min.
struct KeyBlock {
  float scale;
  float min;
  std::array<int, kCellBlock> quants;
};

template <typename Block>
KeyBlock take_apart(const std::byte* bytes) {
  const auto block = load_block<Block>(bytes);
  KeyBlock key{f16_to_f32(block.d), 0, {}};
  if constexpr (requires { block.m; }) key.min = f16_to_f32(block.m);
  if constexpr (requires { Block::kValues; }) {
    const Quants32 quants = unpack_quants(block);
    for (std::size_t i = 0; i < kCellBlock; ++i) key.quants[i] = Block::kValues[quants[i]];
  } else if constexpr (requires { Block::kZeroPoint; }) {
    const Quants32 quants = unpack_quants(block);
    for (std::size_t i = 0; i < kCellBlock; ++i) key.quants[i] = quants[i] - Block::kZeroPoint;
  } else {
    for (std::size_t i = 0; i < kCellBlock; ++i) key.quants[i] = block.qs[i];
  }
  return key;
}

KeyBlock key_block(ElementType type, const std::byte* bytes) {
  switch (type) {
    case ElementType::q8_0: return take_apart<BlockQ8_0>(bytes);
    case ElementType::q5_1: return take_apart<BlockQ5_1>(bytes);
    case ElementType::q5_0: return take_apart<BlockQ5_0>(bytes);
    case ElementType::q4_1: return take_apart<BlockQ4_1>(bytes);
    case ElementType::q4_0: return take_apart<BlockQ4_0>(bytes);
    default: return take_apart<BlockIQ4_NL>(bytes);
  }
}

float larger(float a, float b) {
  return a > b ? a : b;
}

float fold_sum(const float* lanes) {
  float sums[kLanes];
  std::memcpy(sums, lanes, sizeof sums);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

/// The softmax of the places seen so far: their largest score, and sums relative to it.
struct Partial {
  float max;
  float* sum;     // [16]
  float* output;  // [v_dim]

  void clear(std::size_t v_dim) {
    max = std::numeric_limits<float>::lowest();
    std::memset(sum, 0, kLanes * sizeof(float));
    std::memset(output, 0, v_dim * sizeof(float));
  }
};

/// One query row of a task.
class Row {
 public:
  Row(const AttentionTask& task, std::size_t query, std::size_t head)
      : task_(task),
        layout_(*task.layout),
        query_(task.queries[query]),
        q_(task.q + query * task.q_stride + head * layout_.k_dim),
        out_(task.out + query * task.out_stride + head * layout_.v_dim),
        head_(head),
        sink_(task.sinks == nullptr ? nullptr : task.sinks + head),
        has_key_blocks_(is_cache_block_type(layout_.k_type)),
        page_bytes_(layout_.page_bytes()),
        head_offset_(task.kv_head * layout_.head_bytes()),
        k_bytes_(layout_.k_bytes()),
        v_row_bytes_(layout_.v_row_bytes()) {
    const AttentionScratch scratch(layout_, 1, 1);
    float* memory = reinterpret_cast<float*>(task.scratch.data());
    weights_ = memory + scratch.weights;
    chunk_ = {0, memory + scratch.sum, memory + scratch.output};
    merged_ = {0, memory + scratch.merged_sum, memory + scratch.merged};
    quantized_ = reinterpret_cast<std::byte*>(memory + scratch.quantized);
    key_ = reinterpret_cast<std::byte*>(memory + scratch.keys);
    value_ = memory + scratch.values;
    if (has_key_blocks_) quantize_kernel(ActivationFormat::q8_32)(q_, layout_.k_dim, quantized_);
  }

  void compute() {
    merged_.clear(layout_.v_dim);
    const std::size_t n_places = task_.pages.size() * kPageSlots;
    for (std::size_t chunk = 0; chunk < n_places; chunk += kChunkPlaces) {
      chunk_.clear(layout_.v_dim);
      for (std::size_t tile = chunk; tile < chunk + kChunkPlaces; tile += kTilePlaces) add_tile(tile);
      merge_chunk();
    }
    write_output();
  }

 private:
  /// K and V of a place; null where there is no page.
  const std::byte* cell_page(std::size_t place) const {
    const std::size_t index = place / kPageSlots;
    if (index >= task_.pages.size() || task_.pages[index] < 0) return nullptr;
    const std::size_t page = static_cast<std::size_t>(task_.pages[index]);
    return task_.cache + page * page_bytes_ + head_offset_;
  }

  std::int64_t position_of(std::size_t place) const {
    const std::size_t page = static_cast<std::size_t>(task_.pages[place / kPageSlots]);
    return task_.cell_positions[page * kPageSlots + place % kPageSlots];
  }

  bool visible(std::size_t place) const {
    if (cell_page(place) == nullptr) return false;
    const std::int64_t position = position_of(place);
    if (position < 0) return false;
    const bool past = position < query_.position ||
                      (position == query_.position && static_cast<std::int64_t>(place) <= query_.place);
    if (task_.causal && !past) return false;
    if (task_.window <= 0) return true;
    const std::int64_t distance = position - query_.position;
    if (task_.chunked_window) return position / task_.window == query_.position / task_.window;
    return task_.symmetric_window ? std::abs(distance) <= task_.window / 2 : distance > -task_.window;
  }

  float float_dot(std::size_t place) const {
    const std::byte* keys = cell_page(place);
    float sum = 0;
    for (std::size_t d = 0; d < layout_.k_dim; ++d) {
      sum = std::fma(q_[d], load_element(layout_.k_type, keys, d * kPageSlots + place % kPageSlots), sum);
    }
    return sum;
  }

  float block_dot(std::size_t place) const {
    read_key(layout_, cell_page(place) - head_offset_, task_.kv_head, place % kPageSlots, key_);
    const bool has_min = cell_block_form(layout_.k_type).has_min;
    float sum = 0;
    for (std::size_t b = 0; b < layout_.k_dim / kCellBlock; ++b) {
      const KeyBlock key = key_block(layout_.k_type, key_ + b * row_bytes(layout_.k_type, kCellBlock));
      const ActivationBlock32 q = activation_block32(quantized_, b);
      std::int32_t isum = 0;
      for (std::size_t i = 0; i < kCellBlock; ++i) isum += key.quants[i] * q.quants[i];
      sum = std::fma(static_cast<float>(isum), key.scale * q.scale, sum);
      if (has_min) sum = std::fma(static_cast<float>(q.sum), key.min * q.scale, sum);
    }
    return sum;
  }

  float biased(float score, std::size_t place) const {
    const std::int64_t distance = position_of(place) - query_.position;
    if (task_.slopes != nullptr) {
      score = std::fma(-task_.slopes[head_], static_cast<float>(std::abs(distance)), score);
    }
    if (task_.bias_table != nullptr) {
      const std::int64_t radius = task_.bias_radius;
      const std::int64_t column = std::min(std::max(distance, -radius), radius) + radius;
      score += task_.bias_table[static_cast<std::int64_t>(head_) * (2 * radius + 1) + column];
    }
    return score;
  }

  float score(std::size_t place) const {
    const float scaled = (has_key_blocks_ ? block_dot(place) : float_dot(place)) * task_.scale;
    const float capped =
        task_.soft_cap == 0 ? scaled : task_.soft_cap * exact_math::tanh_f32(scaled / task_.soft_cap);
    return biased(capped, place);
  }

  void add_tile(std::size_t tile) {
    float max = chunk_.max;
    for (std::size_t i = 0; i < kTilePlaces; ++i) {
      if (!visible(tile + i)) continue;
      weights_[i] = score(tile + i);
      max = larger(max, weights_[i]);
    }
    const float factor = exact_math::exp_f32(chunk_.max - max);
    for (std::size_t i = 0; i < kLanes; ++i) chunk_.sum[i] *= factor;
    for (std::size_t d = 0; d < layout_.v_dim; ++d) chunk_.output[d] *= factor;
    chunk_.max = max;
    for (std::size_t i = 0; i < kTilePlaces; ++i) {
      if (visible(tile + i)) add_place(tile + i, exact_math::exp_f32(weights_[i] - max));
    }
  }

  void add_place(std::size_t place, float weight) {
    const std::byte* row = cell_page(place) + k_bytes_ + place % kPageSlots * v_row_bytes_;
    decode_row(layout_.v_type, {row, row_bytes(layout_.v_type, layout_.v_dim)}, {value_, layout_.v_dim});
    chunk_.sum[place % kLanes] += weight;
    for (std::size_t d = 0; d < layout_.v_dim; ++d) {
      chunk_.output[d] = std::fma(weight, value_[d], chunk_.output[d]);
    }
  }

  void merge_chunk() {
    const float max = larger(merged_.max, chunk_.max);
    const float before = exact_math::exp_f32(merged_.max - max);
    const float added = exact_math::exp_f32(chunk_.max - max);
    for (std::size_t i = 0; i < kLanes; ++i) {
      merged_.sum[i] = std::fma(chunk_.sum[i], added, merged_.sum[i] * before);
    }
    for (std::size_t d = 0; d < layout_.v_dim; ++d) {
      merged_.output[d] = std::fma(chunk_.output[d], added, merged_.output[d] * before);
    }
    merged_.max = max;
  }

  float final_factor(float sum) const {
    if (sink_ == nullptr) return 1.0f / sum;
    const float max = larger(merged_.max, *sink_);
    const float before = exact_math::exp_f32(merged_.max - max);
    return before / std::fma(sum, before, exact_math::exp_f32(*sink_ - max));
  }

  void write_output() {
    const float sum = fold_sum(merged_.sum);
    const float factor = sum == 0 ? 0.0f : final_factor(sum);
    for (std::size_t d = 0; d < layout_.v_dim; ++d) {
      out_[d] = sum == 0 ? 0.0f : merged_.output[d] * factor + 0.0f;
    }
  }

  const AttentionTask& task_;
  const KvLayout& layout_;
  AttentionQuery query_;
  const float* q_;
  float* out_;
  std::size_t head_;  // in the group
  const float* sink_;
  bool has_key_blocks_;
  std::size_t page_bytes_, head_offset_, k_bytes_, v_row_bytes_;
  std::byte* quantized_;  // the query, where keys have blocks
  std::byte* key_;        // one, as encoded
  float* value_;          // one, decoded
  float* weights_;        // [64]: scores of the tile's visible places
  Partial chunk_;
  Partial merged_;
};

void attention(const AttentionTask& task) {
  for (std::size_t query = 0; query < task.queries.size(); ++query) {
    for (std::size_t head = 0; head < task.group; ++head) Row(task, query, head).compute();
  }
}

void encode_cells(ElementType type, const float* x, std::size_t n, std::byte* out) {
  encode_finite(type, x, n, out);
}

void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k, const float* v) {
  const bool k_blocks = is_cache_block_type(layout.k_type);
  const bool v_blocks = is_cache_block_type(layout.v_type);
  if (k_blocks) store_key_blocks(layout, page, slot, k, encode_cells);
  if (v_blocks) store_value_blocks(layout, page, slot, v, encode_cells);
  const std::size_t head_bytes = layout.head_bytes();
  for (std::size_t head = 0; head < layout.n_kv_heads; ++head) {
    std::byte* keys = page + head * head_bytes;
    for (std::size_t d = 0; !k_blocks && d < layout.k_dim; ++d) {
      encode_cells(layout.k_type, k + head * layout.k_dim + d, 1,
                   keys + row_bytes(layout.k_type, d * kPageSlots + slot));
    }
    if (!v_blocks) {
      encode_cells(layout.v_type, v + head * layout.v_dim, layout.v_dim,
                   keys + layout.k_bytes() + slot * layout.v_row_bytes());
    }
  }
}

}  // namespace

void add_attention(KernelTable& table) {
  table.attention = attention;
}

void add_cell_storage(KernelTable& table) {
  table.store_cell = store_cell;
  table.encode_cells = encode_cells;
}

}  // namespace quipu::cpu::scalar
