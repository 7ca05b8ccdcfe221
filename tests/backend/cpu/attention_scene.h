// A sequence in a paged cache with queries, as the tests of attention need it: of any shape, with holes,
// spare pages and cells that nobody may see, and with the exact answer in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/kernels/kernels.h"
#include "base/aligned_buffer.h"

namespace quipu::cpu::attention_scene {

inline constexpr std::size_t kKvHeads = 2;
inline constexpr std::size_t kKvHead = 1;

struct Settings {
  std::size_t length = 100;   ///< places of the sequence
  std::size_t n_queries = 3;  ///< the last ones, or as many as there are
  std::size_t k_dim = 64;
  std::size_t v_dim = 64;
  std::size_t group = 2;
  ElementType k_type = ElementType::f16;
  ElementType v_type = ElementType::f16;
  std::int32_t window = 0;
  bool causal = true;
  bool symmetric_window = false;
  bool chunked_window = false;
  bool slopes = false;
  std::int32_t bias_radius = -1;  ///< of a table of biases; -1: there is none
  float soft_cap = 0;
  bool sinks = false;
  unsigned holes = 0;        ///< one cell in so many is empty, one page in so many is missing
  unsigned page_seed = 1;    ///< of the order of pages in memory
  unsigned hidden_seed = 1;  ///< of what is stored in empty cells, spare pages and after the last place
  std::size_t later = 0;     ///< cells after the queries, all in their future
  float q_range = 2;
  float k_range = 1;
};

/// A number for each (place, head, dimension), whatever the layout.
inline float cell_number(std::size_t place, std::size_t head, std::size_t d, unsigned seed) {
  std::uint64_t x = (place * 64 + head) * 1024 + d + (static_cast<std::uint64_t>(seed) << 40);
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return static_cast<float>(static_cast<std::int64_t>(x >> 40)) * 0x1p-23f - 1.0f;
}

/// A cache with one sequence in it, and queries.
class Scene {
 public:
  explicit Scene(const Settings& settings)
      : settings_(settings),
        layout_{settings.k_type, settings.v_type, kKvHeads, settings.k_dim, settings.v_dim} {
    const std::size_t n_places = settings.length + settings.later;
    const std::size_t n_pages = (n_places + kPageSlots - 1) / kPageSlots;
    place_pages(n_pages);
    for (std::size_t place = 0; place < pages_.size() * kPageSlots; ++place) fill_place(place);
    hide_pages();

    const std::size_t n_queries = std::min(settings.n_queries, settings.length);
    for (std::size_t place = settings.length - n_queries; place < settings.length; ++place) {
      queries_.push_back({position(place), static_cast<std::int32_t>(place)});
      for (std::size_t i = 0; i < settings.group * settings.k_dim; ++i) {
        q_.push_back(cell_number(place, 40, i, 5) * settings.q_range);
      }
    }
    for (std::size_t head = 0; head < settings.group; ++head)
      sinks_.push_back(0.7f * static_cast<float>(head) - 0.5f);
    for (std::size_t head = 0; head < settings.group; ++head)
      slopes_.push_back(std::ldexp(1.0f, -static_cast<int>(head) - 1));
    const std::int64_t n_biases = 2 * static_cast<std::int64_t>(settings.bias_radius) + 1;
    for (std::int64_t i = 0; i < n_biases * static_cast<std::int64_t>(settings.group); ++i)
      biases_.push_back(cell_number(static_cast<std::size_t>(i), 60, 0, 3));
  }

  /// Outputs of queries [first, first + count), [count, group * v_dim].
  std::vector<float> run(const KernelTable& table, std::size_t first, std::size_t count) const {
    const std::size_t row = settings_.group * settings_.v_dim;
    AlignedBuffer scratch(attention_scratch_bytes(layout_, count, settings_.group));
    std::memset(scratch.bytes().data(), 0xff, scratch.size());
    std::vector<float> out(count * (row + 3), std::nanf(""));
    AttentionTask task{};
    task.layout = &layout_;
    task.cache = cache_.bytes().data();
    task.kv_head = kKvHead;
    task.pages = pages_;
    task.cell_positions = positions_.data();
    task.queries = std::span(queries_).subspan(first, count);
    task.q = q_.data() + first * settings_.group * settings_.k_dim;
    task.q_stride = settings_.group * settings_.k_dim;
    task.group = settings_.group;
    task.out = out.data();
    task.out_stride = row + 3;
    task.scale = 1.0f / std::sqrt(static_cast<float>(settings_.k_dim));
    task.soft_cap = settings_.soft_cap;
    task.window = settings_.window;
    task.causal = settings_.causal;
    task.symmetric_window = settings_.symmetric_window;
    task.chunked_window = settings_.chunked_window;
    task.slopes = settings_.slopes ? slopes_.data() : nullptr;
    task.bias_table = settings_.bias_radius >= 0 ? biases_.data() : nullptr;
    task.bias_radius = settings_.bias_radius;
    task.sinks = settings_.sinks ? sinks_.data() : nullptr;
    task.scratch = scratch.bytes();
    table.attention(task);
    std::vector<float> packed;
    for (std::size_t query = 0; query < count; ++query) {
      packed.insert(packed.end(), out.begin() + query * (row + 3), out.begin() + query * (row + 3) + row);
    }
    return packed;
  }

  std::vector<float> run(const KernelTable& table) const { return run(table, 0, queries_.size()); }

  /// The same by the definition of attention, in double precision.
  std::vector<float> reference() const {
    std::vector<float> out;
    for (std::size_t query = 0; query < queries_.size(); ++query) {
      for (std::size_t head = 0; head < settings_.group; ++head) reference_row(query, head, out);
    }
    return out;
  }

  std::size_t n_queries() const { return queries_.size(); }

 private:
  static std::int32_t position(std::size_t place) { return static_cast<std::int32_t>(place) + 5; }

  void place_pages(std::size_t n_pages) {
    const std::size_t spare = settings_.page_seed % 4;
    std::vector<std::int32_t> order(n_pages + spare);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937(settings_.page_seed));
    pages_.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_pages));
    positions_.assign(order.size() * kPageSlots, -1);
    cache_ = AlignedBuffer(order.size() * layout_.page_bytes());
    for (std::size_t page = 0; page < order.size(); ++page) {
      for (std::size_t slot = 0; slot < kPageSlots; ++slot) {
        store(page, slot, page * kPageSlots + slot, 100 + settings_.hidden_seed);
        if (page % 2 == 0)
          positions_[page * kPageSlots + slot] = 3;  // other sequences' cells, if page is spare
      }
    }
    for (const std::int32_t page : pages_) {
      for (std::size_t slot = 0; slot < kPageSlots; ++slot) positions_[cell(page, slot)] = -1;
    }
    poison_padding();
  }

  static std::size_t cell(std::int32_t page, std::size_t slot) {
    return static_cast<std::size_t>(page) * kPageSlots + slot;
  }

  void store(std::size_t page, std::size_t slot, std::size_t number, unsigned seed) {
    std::vector<float> k(kKvHeads * settings_.k_dim);
    std::vector<float> v(kKvHeads * settings_.v_dim);
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = cell_number(number, 0, i, seed) * settings_.k_range;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = cell_number(number, 1, i, seed) - 0.3f;
    store_cell(layout_, cache_.bytes().data() + page * layout_.page_bytes(), slot, k.data(), v.data());
  }

  /// Bytes of V past v_dim belong to no cell: whatever is there must not matter.
  void poison_padding() {
    const std::size_t used = layout_.v_encoded_bytes();
    const std::size_t row = layout_.v_row_bytes();
    for (std::size_t page = 0; page < positions_.size() / kPageSlots; ++page) {
      for (std::size_t head = 0; head < kKvHeads; ++head) {
        std::byte* values = cache_.bytes().data() + page * layout_.page_bytes() +
                            head * layout_.head_bytes() + layout_.k_bytes();
        for (std::size_t slot = 0; slot < kPageSlots; ++slot) {
          std::memset(values + slot * row + used, 0xff, row - used);
        }
      }
    }
  }

  bool is_hole(std::size_t place) const {
    if (settings_.holes == 0 || place + 1 == settings_.length) return false;
    return cell_number(place, 50, 0, 9) < 2.0f / static_cast<float>(settings_.holes) - 1.0f;
  }

  void fill_place(std::size_t place) {
    if (place >= settings_.length + settings_.later || is_hole(place)) return;
    const std::int32_t page = pages_[place / kPageSlots];
    positions_[cell(page, place % kPageSlots)] = position(place);
    store(static_cast<std::size_t>(page), place % kPageSlots, place, 1);
  }

  void hide_pages() {
    for (std::size_t i = 0; settings_.holes != 0 && i + 2 < pages_.size(); ++i) {
      if (cell_number(i, 51, 0, 9) < 2.0f / static_cast<float>(settings_.holes) - 1.0f) pages_[i] = -1;
    }
  }

  bool visible(const AttentionQuery& query, std::size_t place) const {
    const std::int32_t page = pages_[place / kPageSlots];
    if (page < 0) return false;
    const std::int32_t p = positions_[cell(page, place % kPageSlots)];
    if (p < 0) return false;
    if (settings_.window > 0) {
      const std::int32_t distance = p - query.position;
      const bool near = settings_.chunked_window ? p / settings_.window == query.position / settings_.window
                        : settings_.symmetric_window ? std::abs(distance) <= settings_.window / 2
                                                     : distance > -settings_.window;
      if (!near) return false;
    }
    return !settings_.causal || p < query.position ||
           (p == query.position && static_cast<std::int32_t>(place) <= query.place);
  }

  /// What the scores are made of: for keys of block types the query as its quants tell it.
  std::vector<float> query_row(std::size_t query, std::size_t head) const {
    const float* q = q_.data() + (query * settings_.group + head) * settings_.k_dim;
    std::vector<float> row(q, q + settings_.k_dim);
    if (!is_cache_block_type(settings_.k_type)) return row;
    AlignedBuffer bytes(activation_row_bytes(ActivationFormat::q8_32, settings_.k_dim));
    scalar_kernels().quantize(ActivationFormat::q8_32)(q, settings_.k_dim, bytes.bytes().data());
    for (std::size_t d = 0; d < settings_.k_dim; ++d) {
      const ActivationBlock32 block = activation_block32(bytes.bytes().data(), d / 32);
      row[d] = static_cast<float>(block.quants[d % 32]) * block.scale;
    }
    return row;
  }

  double bias(const AttentionQuery& query, std::size_t place, std::size_t head) const {
    const std::int32_t distance =
        positions_[cell(pages_[place / kPageSlots], place % kPageSlots)] - query.position;
    double bias = settings_.slopes ? -static_cast<double>(slopes_[head]) * std::abs(distance) : 0;
    if (settings_.bias_radius >= 0) {
      const std::int32_t radius = settings_.bias_radius;
      const std::int32_t column = std::clamp(distance, -radius, radius) + radius;
      bias += biases_[head * (2 * static_cast<std::size_t>(radius) + 1) + static_cast<std::size_t>(column)];
    }
    return bias;
  }

  void reference_row(std::size_t query, std::size_t head, std::vector<float>& out) const {
    const std::vector<float> q = query_row(query, head);
    std::vector<double> sums(settings_.v_dim, 0.0);
    double total = 0;
    double max = settings_.sinks ? sinks_[head] : -std::numeric_limits<double>::infinity();
    std::vector<double> scores;
    std::vector<std::vector<float>> values;
    for (std::size_t place = 0; place < pages_.size() * kPageSlots; ++place) {
      if (!visible(queries_[query], place)) continue;
      std::vector<float> k(kKvHeads * settings_.k_dim);
      std::vector<float> v(kKvHeads * settings_.v_dim);
      const std::size_t page = static_cast<std::size_t>(pages_[place / kPageSlots]);
      load_cell(layout_, cache_.bytes().data() + page * layout_.page_bytes(), place % kPageSlots, k.data(),
                v.data());
      double score = 0;
      for (std::size_t d = 0; d < settings_.k_dim; ++d) {
        score += static_cast<double>(q[d]) * k[kKvHead * settings_.k_dim + d];
      }
      score /= std::sqrt(static_cast<double>(settings_.k_dim));
      if (settings_.soft_cap != 0) score = settings_.soft_cap * std::tanh(score / settings_.soft_cap);
      score += bias(queries_[query], place, head);
      max = std::max(max, score);
      scores.push_back(score);
      values.emplace_back(v.begin() + static_cast<std::ptrdiff_t>(kKvHead * settings_.v_dim), v.end());
    }
    if (settings_.sinks) total = std::exp(sinks_[head] - max);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double weight = std::exp(scores[i] - max);
      total += weight;
      for (std::size_t d = 0; d < settings_.v_dim; ++d) sums[d] += weight * values[i][d];
    }
    for (const double sum : sums) out.push_back(static_cast<float>(total == 0 ? 0 : sum / total));
  }

  Settings settings_;
  KvLayout layout_;
  AlignedBuffer cache_;
  std::vector<std::int32_t> pages_;
  std::vector<std::int32_t> positions_;
  std::vector<AttentionQuery> queries_;
  std::vector<float> q_;
  std::vector<float> sinks_;
  std::vector<float> slopes_;
  std::vector<float> biases_;
};

}  // namespace quipu::cpu::attention_scene
