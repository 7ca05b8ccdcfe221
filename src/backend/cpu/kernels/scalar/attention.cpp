// Attention as kernels/attention.h writes it down: one query row after the other, one place after the other.
// Slow and obvious: it skips nothing but cells that do not exist.
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/scalar/row_ops.h"
#include "base/checked.h"
#include "base/half.h"
#include "base/math.h"

namespace quipu::cpu::scalar {
namespace {

constexpr std::size_t kLanes = 16;

float load_element(ElementType type, const std::byte* elements, std::size_t index) {
  if (type == ElementType::f32) {
    float value = 0;
    std::memcpy(&value, elements + index * sizeof value, sizeof value);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, elements + index * sizeof half, sizeof half);
  return f16_to_f32(half);
}

void store_element(ElementType type, std::byte* elements, std::size_t index, float value) {
  constexpr float kLargestHalf = 65504.0f;
  const float limit = type == ElementType::f32 ? std::numeric_limits<float>::max() : kLargestHalf;
  const float finite = value != value ? 0.0f : std::fmin(std::fmax(value, -limit), limit);
  if (type == ElementType::f32) {
    std::memcpy(elements + index * sizeof finite, &finite, sizeof finite);
  } else {
    const std::uint16_t half = f32_to_f16(finite);
    std::memcpy(elements + index * sizeof half, &half, sizeof half);
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
        sink_(task.sinks == nullptr ? nullptr : task.sinks + head) {
    const AttentionScratch scratch(layout_, 1, 1);
    float* memory = reinterpret_cast<float*>(task.scratch.data());
    weights_ = memory + scratch.weights;
    chunk_ = {0, memory + scratch.sum, memory + scratch.output};
    merged_ = {0, memory + scratch.merged_sum, memory + scratch.merged};
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
    return task_.cache + page * layout_.page_bytes() + task_.kv_head * layout_.head_bytes();
  }

  bool visible(std::size_t place) const {
    if (cell_page(place) == nullptr) return false;
    const std::size_t page = static_cast<std::size_t>(task_.pages[place / kPageSlots]);
    const std::int64_t position = task_.cell_positions[page * kPageSlots + place % kPageSlots];
    if (position < 0) return false;
    const bool past = position < query_.position ||
                      (position == query_.position && static_cast<std::int64_t>(place) <= query_.place);
    if (task_.causal && !past) return false;
    return task_.window <= 0 || position > static_cast<std::int64_t>(query_.position) - task_.window;
  }

  float score(std::size_t place) const {
    const std::byte* keys = cell_page(place);
    float sum = 0;
    for (std::size_t d = 0; d < layout_.k_dim; ++d) {
      sum = std::fma(q_[d], load_element(layout_.k_type, keys, d * kPageSlots + place % kPageSlots), sum);
    }
    const float scaled = sum * task_.scale;
    return task_.soft_cap == 0 ? scaled : task_.soft_cap * exact_math::tanh_f32(scaled / task_.soft_cap);
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
    const std::byte* values = cell_page(place) + layout_.k_bytes();
    const std::size_t row = place % kPageSlots * round_up(layout_.v_dim, kLanes);
    chunk_.sum[place % kLanes] += weight;
    for (std::size_t d = 0; d < layout_.v_dim; ++d) {
      chunk_.output[d] = std::fma(weight, load_element(layout_.v_type, values, row + d), chunk_.output[d]);
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
  const float* sink_;
  float* weights_;  // [64]: scores of the tile's visible places
  Partial chunk_;
  Partial merged_;
};

}  // namespace

void attention(const AttentionTask& task) {
  for (std::size_t query = 0; query < task.queries.size(); ++query) {
    for (std::size_t head = 0; head < task.group; ++head) Row(task, query, head).compute();
  }
}

void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k, const float* v) {
  const std::size_t v_row = round_up(layout.v_dim, kLanes);
  for (std::size_t head = 0; head < layout.n_kv_heads; ++head) {
    std::byte* keys = page + head * layout.head_bytes();
    std::byte* values = keys + layout.k_bytes();
    for (std::size_t d = 0; d < layout.k_dim; ++d) {
      store_element(layout.k_type, keys, d * kPageSlots + slot, k[head * layout.k_dim + d]);
    }
    for (std::size_t d = 0; d < layout.v_dim; ++d) {
      store_element(layout.v_type, values, slot * v_row + d, v[head * layout.v_dim + d]);
    }
  }
}

}  // namespace quipu::cpu::scalar
