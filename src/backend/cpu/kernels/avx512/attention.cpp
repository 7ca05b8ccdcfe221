// Attention for up to six query rows at a time in registers. Scores have a lane for each place (K is stored
// [dim][16]), outputs a lane for each dimension (V is stored [slot][dim]), so that neither needs sums across
// lanes. A tile of keys serves all rows of the task, then the tile of values does: each stays in the
// first-level cache meanwhile.
#include <immintrin.h>

#include <cstring>

#include "backend/cpu/kernels/avx512/row_ops.h"
#include "backend/cpu/kernels/avx512/vector_math.h"

namespace quipu::cpu::scalar {
void attention(const AttentionTask& task);
}
namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kTilePages = kTilePlaces / kPageSlots;
constexpr int kRowBlock =
    6;  // 6 rows x 4 vectors of results, 4 vectors of K or V and a broadcast: 29 registers
constexpr float kLowest = -0x1.fffffep+127f;
constexpr std::int32_t kNoCell = -1;
constexpr std::size_t kNoChunk = SIZE_MAX;

constexpr std::size_t element_bytes(ElementType type) {
  return type == ElementType::f32 ? 4 : 2;
}

template <ElementType type>
inline __m512 load_elements(const std::byte* at) {
  if constexpr (type == ElementType::f32) {
    return _mm512_loadu_ps(at);
  } else {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
}

inline float larger(float a, float b) {
  return a > b ? a : b;
}

/// Where one query looks, as comparisons of positions.
struct Range {
  std::int32_t after;     ///< only cells with a larger position
  std::int32_t position;  ///< causal: cells before it are visible, those at it up to `place`
  std::int32_t place;
};

/// 64 places: their cells' positions, and where their keys and values are.
struct Tile {
  std::size_t place;  ///< the first
  __m512i positions[kTilePages];
  const std::byte* keys[kTilePages];  ///< a missing page has the address of another one of the tile
  const std::byte* values[kTilePages];
};

/// What the next tile will read: a page's keys and values are a few kilobytes each, too short for the
/// processor to see a stream in them. The first block of rows of a tile asks for it on the way, a bit in each
/// step, into the second-level cache.
struct Ahead {
  const std::byte* const* at;  ///< [kTilePages]
  std::size_t bytes;           ///< of each
};

inline void prefetch(const std::byte* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
}

/// A task with its scratch taken apart.
struct Job {
  const AttentionTask* task;
  std::size_t n_rows;
  std::size_t k_dim;
  std::size_t v_dim;
  std::size_t v_padded;
  float* q;  ///< for each block of R rows from r0 on, [k_dim][R] at q + r0 * k_dim
  float* weights;
  float* output;
  float* sum;
  float* max;
  float* factor;
  float* merged;
  float* merged_sum;
  float* merged_max;
  std::uint64_t* visible;
  std::int32_t least_after;        ///< over the queries
  std::int32_t greatest_position;  ///< over the queries
};

Range range_of(const AttentionTask& task, std::size_t query) {
  const AttentionQuery& at = task.queries.data()[query];
  std::int64_t after = kNoCell;  // empty cells have this position
  if (task.window > 0) {
    const std::int64_t bound = static_cast<std::int64_t>(at.position) - task.window;
    if (bound > after) after = bound;
  }
  return {static_cast<std::int32_t>(after), at.position, at.place};
}

/// Rows go in blocks of equal size, but for one: 64 rows are nine blocks of six and two of five.
struct RowBlocks {
  explicit RowBlocks(std::size_t n_rows)
      : count((n_rows + kRowBlock - 1) / kRowBlock),
        size(count == 0 ? 0 : n_rows / count),
        larger(count == 0 ? 0 : n_rows % count) {}

  template <typename Step>
  void for_each(Step step) const {
    std::size_t row = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t n = size + (i < larger ? 1 : 0);
      step(row, n);
      row += n;
    }
  }

  std::size_t count;
  std::size_t size;
  std::size_t larger;  ///< the first so many blocks have one row more
};

// -- which places are seen

/// False if no query of the task can see any of the tile's cells.
bool load_tile(const Job& job, std::size_t place, Tile& tile) {
  const AttentionTask& task = *job.task;
  const std::size_t head_offset = task.kv_head * task.layout->head_bytes();
  const std::size_t page_bytes = task.layout->page_bytes();
  const std::byte* any = nullptr;
  __m512i greatest = _mm512_set1_epi32(kNoCell);
  __m512i least = _mm512_set1_epi32(kNoCell);  // as unsigned numbers, where "no cell" is the greatest
  tile.place = place;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    const std::size_t index = place / kPageSlots + i;
    const std::int32_t page = index < task.pages.size() ? task.pages.data()[index] : -1;
    tile.keys[i] = nullptr;
    tile.positions[i] = _mm512_set1_epi32(kNoCell);
    if (page < 0) continue;
    const std::size_t number = static_cast<std::size_t>(page);
    tile.keys[i] = any = task.cache + number * page_bytes + head_offset;
    tile.positions[i] = _mm512_loadu_si512(task.cell_positions + number * kPageSlots);
    greatest = _mm512_max_epi32(greatest, tile.positions[i]);
    least = _mm512_min_epu32(least, tile.positions[i]);
  }
  if (any == nullptr || _mm512_reduce_max_epi32(greatest) <= job.least_after) return false;
  const std::uint32_t least_position = _mm512_reduce_min_epu32(least);
  if (task.causal && least_position > static_cast<std::uint32_t>(job.greatest_position)) return false;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    if (tile.keys[i] == nullptr) tile.keys[i] = any;
    tile.values[i] = tile.keys[i] + task.layout->k_bytes();
  }
  return true;
}

/// The first tile from `place` on that a query may see; false if there is none.
bool find_tile(const Job& job, std::size_t place, Tile& tile) {
  const std::size_t n_places = job.task->pages.size() * kPageSlots;
  for (; place < n_places; place += kTilePlaces) {
    if (load_tile(job, place, tile)) return true;
  }
  return false;
}

std::uint64_t visible_places(const AttentionTask& task, const Tile& tile, const Range& range) {
  const __m512i after = _mm512_set1_epi32(range.after);
  const __m512i now = _mm512_set1_epi32(range.position);
  std::uint64_t visible = 0;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    const __m512i positions = tile.positions[i];
    std::uint32_t mask = _mm512_cmpgt_epi32_mask(positions, after);
    if (task.causal) {
      const std::int64_t up_to = range.place - static_cast<std::int64_t>(tile.place + i * kPageSlots) + 1;
      const std::uint32_t not_later = up_to <= 0 ? 0u : up_to >= 16 ? 0xffffu : (1u << up_to) - 1u;
      mask &= _mm512_cmplt_epi32_mask(positions, now) | (_mm512_cmpeq_epi32_mask(positions, now) & not_later);
    }
    visible |= static_cast<std::uint64_t>(mask) << (i * kPageSlots);
  }
  return visible;
}

/// Sets the rows' bits; false if all are zero.
bool mark_visible(const Job& job, const Tile& tile) {
  const AttentionTask& task = *job.task;
  std::uint64_t any = 0;
  std::uint64_t* row = job.visible;
  for (std::size_t query = 0; query < task.queries.size(); ++query) {
    const std::uint64_t visible = visible_places(task, tile, range_of(task, query));
    any |= visible;
    for (std::size_t head = 0; head < task.group; ++head) *row++ = visible;
  }
  return any != 0;
}

// -- scores and weights

void cap_scores(__m512 (&scores)[kTilePages], float soft_cap) {
  const __m512 cap = _mm512_set1_ps(soft_cap);
  for (__m512& score : scores) score = _mm512_mul_ps(cap, tanh(_mm512_div_ps(score, cap)));
}

/// From the dot products of a row and a tile to weights; rescaling the chunk's output is left to add_values.
inline void finish_scores(const Job& job, std::size_t row, const __m512 (&dots)[kTilePages]) {
  const __m512 scale = _mm512_set1_ps(job.task->scale);
  const std::uint64_t visible = job.visible[row];
  __mmask16 mask[kTilePages];
  __m512 scores[kTilePages];
  for (std::size_t i = 0; i < kTilePages; ++i) {
    mask[i] = static_cast<__mmask16>(visible >> (i * kPageSlots));
    scores[i] = _mm512_mul_ps(dots[i], scale);
  }
  if (job.task->soft_cap != 0) cap_scores(scores, job.task->soft_cap);
  __m512 greatest = _mm512_set1_ps(kLowest);
  for (std::size_t i = 0; i < kTilePages; ++i) {
    greatest = _mm512_mask_max_ps(greatest, mask[i], greatest, scores[i]);
  }
  const float max = larger(job.max[row], fold_max(greatest));
  const __m512 factor = exp_not_positive(0xffff, _mm512_set1_ps(job.max[row] - max));
  __m512 sum = _mm512_mul_ps(_mm512_loadu_ps(job.sum + row * kLanes), factor);
  for (std::size_t i = 0; i < kTilePages; ++i) {
    const __m512 weight = exp_not_positive(mask[i], _mm512_sub_ps(scores[i], _mm512_set1_ps(max)));
    sum = _mm512_add_ps(sum, weight);
    _mm512_storeu_ps(job.weights + row * kTilePlaces + i * kLanes, weight);
  }
  _mm512_storeu_ps(job.sum + row * kLanes, sum);
  job.factor[row] = _mm512_cvtss_f32(factor);
  job.max[row] = max;
}

/// Fetches `ahead`, if not null, on the way: a part of each of its pages for each dimension.
template <ElementType type, int n_rows>
void score_rows(const Job& job, const Tile& tile, std::size_t first_row, const Ahead* ahead) {
  constexpr std::size_t kStep = kPageSlots * element_bytes(type);
  __m512 dots[n_rows][kTilePages];
  for (auto& row : dots) {
    for (auto& vector : row) vector = _mm512_setzero_ps();
  }
  const std::size_t ahead_step = ahead == nullptr ? 0 : ahead->bytes / job.k_dim;
  const float* q = job.q + first_row * job.k_dim;
  for (std::size_t d = 0; d < job.k_dim; ++d) {
    __m512 keys[kTilePages];
    for (std::size_t i = 0; i < kTilePages; ++i) keys[i] = load_elements<type>(tile.keys[i] + d * kStep);
    if (ahead != nullptr) {
      for (std::size_t i = 0; i < kTilePages; ++i) prefetch(ahead->at[i] + d * ahead_step);
    }
    for (int r = 0; r < n_rows; ++r) {
      const __m512 broadcast = _mm512_set1_ps(q[d * n_rows + static_cast<std::size_t>(r)]);
      for (std::size_t i = 0; i < kTilePages; ++i)
        dots[r][i] = _mm512_fmadd_ps(broadcast, keys[i], dots[r][i]);
    }
  }
  for (int r = 0; r < n_rows; ++r) {
    __m512 row[kTilePages];  // a copy: an array whose address is taken would not stay in registers above
    for (std::size_t i = 0; i < kTilePages; ++i) row[i] = dots[r][i];
    finish_scores(job, first_row + static_cast<std::size_t>(r), row);
  }
}

// -- outputs

/// output[rows][16 n_vectors dimensions] = output * factor + weights * values, from dimension `dim` on. Pages
/// whose bit is not set in `pages` are not seen by any of the rows. Fetches `ahead`, if not null, on the way:
/// a part of a page for each slot.
template <ElementType type, int n_rows, int n_vectors>
inline void add_values_at(const Job& job, const Tile& tile, std::size_t first_row, std::size_t dim,
                          std::uint32_t pages, const Ahead* ahead) {
  const std::size_t ahead_step = ahead == nullptr ? 0 : ahead->bytes / kPageSlots;
  const std::size_t step = job.v_padded * element_bytes(type);
  const float* weights = job.weights + first_row * kTilePlaces;
  float* output = job.output + first_row * job.v_padded + dim;
  __m512 sums[n_rows][n_vectors];
  for (int r = 0; r < n_rows; ++r) {
    const __m512 factor = _mm512_set1_ps(job.factor[first_row + static_cast<std::size_t>(r)]);
    for (int j = 0; j < n_vectors; ++j) {
      sums[r][j] = _mm512_mul_ps(
          _mm512_loadu_ps(output + static_cast<std::size_t>(r) * job.v_padded + j * 16), factor);
    }
  }
  for (std::size_t page = 0; page < kTilePages; ++page) {
    if (((pages >> page) & 1u) == 0) continue;
    const std::byte* row = tile.values[page] + dim * element_bytes(type);
    for (std::size_t slot = 0; slot < kPageSlots; ++slot, row += step) {
      for (std::size_t line = 0; line < ahead_step; line += 64)
        prefetch(ahead->at[page] + slot * ahead_step + line);
      __m512 values[n_vectors];
      for (int j = 0; j < n_vectors; ++j) values[j] = load_elements<type>(row + j * 16 * element_bytes(type));
      for (int r = 0; r < n_rows; ++r) {
        const std::size_t at = static_cast<std::size_t>(r) * kTilePlaces + page * kPageSlots + slot;
        const __m512 weight = _mm512_set1_ps(weights[at]);
        for (int j = 0; j < n_vectors; ++j) sums[r][j] = _mm512_fmadd_ps(weight, values[j], sums[r][j]);
      }
    }
  }
  for (int r = 0; r < n_rows; ++r) {
    for (int j = 0; j < n_vectors; ++j) {
      _mm512_storeu_ps(output + static_cast<std::size_t>(r) * job.v_padded + j * 16, sums[r][j]);
    }
  }
}

template <ElementType type, int n_rows>
void add_values(const Job& job, const Tile& tile, std::size_t first_row, std::uint32_t pages,
                const Ahead* ahead) {
  std::size_t dim = 0;
  for (; dim + 64 <= job.v_padded; dim += 64, ahead = nullptr) {
    add_values_at<type, n_rows, 4>(job, tile, first_row, dim, pages, ahead);
  }
  for (; dim + 32 <= job.v_padded; dim += 32, ahead = nullptr) {
    add_values_at<type, n_rows, 2>(job, tile, first_row, dim, pages, ahead);
  }
  if (dim < job.v_padded) add_values_at<type, n_rows, 1>(job, tile, first_row, dim, pages, ahead);
}

using ScoreRows = void (*)(const Job&, const Tile&, std::size_t, const Ahead*);
using AddValues = void (*)(const Job&, const Tile&, std::size_t, std::uint32_t, const Ahead*);

template <ElementType type>
constexpr ScoreRows kScoreRows[kRowBlock] = {score_rows<type, 1>, score_rows<type, 2>, score_rows<type, 3>,
                                             score_rows<type, 4>, score_rows<type, 5>, score_rows<type, 6>};
template <ElementType type>
constexpr AddValues kAddValues[kRowBlock] = {add_values<type, 1>, add_values<type, 2>, add_values<type, 3>,
                                             add_values<type, 4>, add_values<type, 5>, add_values<type, 6>};

// -- chunks

void clear_chunk(const Job& job) {
  for (std::size_t row = 0; row < job.n_rows; ++row) job.max[row] = kLowest;
  std::memset(job.sum, 0, job.n_rows * kLanes * sizeof(float));
  std::memset(job.output, 0, job.n_rows * job.v_padded * sizeof(float));
}

void clear_merged(const Job& job) {
  for (std::size_t row = 0; row < job.n_rows; ++row) job.merged_max[row] = kLowest;
  std::memset(job.merged_sum, 0, job.n_rows * kLanes * sizeof(float));
  std::memset(job.merged, 0, job.n_rows * job.v_padded * sizeof(float));
}

void merge(float* merged, const float* chunk, std::size_t n, __m512 before, __m512 added) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    const __m512 old = _mm512_mul_ps(_mm512_loadu_ps(merged + i), before);
    _mm512_storeu_ps(merged + i, _mm512_fmadd_ps(_mm512_loadu_ps(chunk + i), added, old));
  }
}

void merge_chunk(const Job& job) {
  for (std::size_t row = 0; row < job.n_rows; ++row) {
    const float max = larger(job.merged_max[row], job.max[row]);
    const __m512 before = exp(_mm512_set1_ps(job.merged_max[row] - max));
    const __m512 added = exp(_mm512_set1_ps(job.max[row] - max));
    merge(job.merged_sum + row * kLanes, job.sum + row * kLanes, kLanes, before, added);
    merge(job.merged + row * job.v_padded, job.output + row * job.v_padded, job.v_padded, before, added);
    job.merged_max[row] = max;
  }
}

/// Places that any of the rows [row, row + n) sees.
std::uint64_t seen_by(const Job& job, std::size_t row, std::size_t n) {
  std::uint64_t places = 0;
  for (std::size_t i = 0; i < n; ++i) places |= job.visible[row + i];
  return places;
}

std::uint32_t pages_of(std::uint64_t places) {
  std::uint32_t pages = 0;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    if (((places >> (i * kPageSlots)) & 0xffffu) != 0) pages |= 1u << i;
  }
  return pages;
}

/// `next` is the tile after this one, or null.
void score_tile(const Job& job, const Tile& tile, const Tile* next, const RowBlocks& blocks) {
  const KvLayout& layout = *job.task->layout;
  const ScoreRows* score =
      layout.k_type == ElementType::f32 ? kScoreRows<ElementType::f32> : kScoreRows<ElementType::f16>;
  const Ahead keys = next == nullptr ? Ahead{} : Ahead{next->keys, layout.k_bytes()};
  const Ahead* ahead = next == nullptr ? nullptr : &keys;
  blocks.for_each([&](std::size_t row, std::size_t n) {
    if (seen_by(job, row, n) == 0) return;
    score[n - 1](job, tile, row, ahead);
    ahead = nullptr;
  });
}

void add_tile_values(const Job& job, const Tile& tile, const Tile* next, const RowBlocks& blocks) {
  const KvLayout& layout = *job.task->layout;
  const AddValues* add =
      layout.v_type == ElementType::f32 ? kAddValues<ElementType::f32> : kAddValues<ElementType::f16>;
  const Ahead values = next == nullptr ? Ahead{} : Ahead{next->values, layout.v_bytes()};
  const Ahead* ahead = next == nullptr ? nullptr : &values;
  blocks.for_each([&](std::size_t row, std::size_t n) {
    const std::uint32_t pages = pages_of(seen_by(job, row, n));
    if (pages == 0) return;
    add[n - 1](job, tile, row, pages, ahead);
    ahead = nullptr;
  });
}

// -- the whole task

Job open_job(const AttentionTask& task) {
  const KvLayout& layout = *task.layout;
  const AttentionScratch scratch(layout, task.queries.size(), task.group);
  float* memory = reinterpret_cast<float*>(task.scratch.data());
  Job job{};
  job.task = &task;
  job.n_rows = task.queries.size() * task.group;
  job.k_dim = layout.k_dim;
  job.v_dim = layout.v_dim;
  job.v_padded = scratch.v_padded;
  job.q = memory + scratch.q;
  job.weights = memory + scratch.weights;
  job.output = memory + scratch.output;
  job.sum = memory + scratch.sum;
  job.max = memory + scratch.max;
  job.factor = memory + scratch.factor;
  job.merged = memory + scratch.merged;
  job.merged_sum = memory + scratch.merged_sum;
  job.merged_max = memory + scratch.merged_max;
  job.visible = reinterpret_cast<std::uint64_t*>(memory + scratch.visible);
  job.least_after = INT32_MAX;
  job.greatest_position = 0;
  for (std::size_t query = 0; query < task.queries.size(); ++query) {
    const Range range = range_of(task, query);
    if (range.after < job.least_after) job.least_after = range.after;
    if (range.position > job.greatest_position) job.greatest_position = range.position;
  }
  return job;
}

/// [k_dim][n_rows] from rows of k_dim.
template <std::size_t n_rows>
void interleave_rows(const float* const* rows, std::size_t k_dim, float* out) {
  for (std::size_t d = 0; d < k_dim; ++d, out += n_rows) {
    for (std::size_t r = 0; r < n_rows; ++r) out[r] = rows[r][d];
  }
}

void pack_queries(const Job& job, const RowBlocks& blocks) {
  static constexpr decltype(&interleave_rows<1>) kInterleave[kRowBlock] = {
      interleave_rows<1>, interleave_rows<2>, interleave_rows<3>,
      interleave_rows<4>, interleave_rows<5>, interleave_rows<6>};
  const AttentionTask& task = *job.task;
  blocks.for_each([&](std::size_t first, std::size_t n) {
    const float* rows[kRowBlock];
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t query = (first + i) / task.group;
      rows[i] = task.q + query * task.q_stride + (first + i) % task.group * job.k_dim;
    }
    kInterleave[n - 1](rows, job.k_dim, job.q + first * job.k_dim);
  });
}

float final_factor(const Job& job, std::size_t row, float sum) {
  const AttentionTask& task = *job.task;
  if (task.sinks == nullptr) return 1.0f / sum;
  const float sink = task.sinks[row % task.group];
  const float max = larger(job.merged_max[row], sink);
  const float before = _mm512_cvtss_f32(exp(_mm512_set1_ps(job.merged_max[row] - max)));
  const float of_sink = _mm512_cvtss_f32(exp(_mm512_set1_ps(sink - max)));
  return before / __builtin_fmaf(sum, before, of_sink);
}

void write_output(const Job& job, std::size_t row) {
  const AttentionTask& task = *job.task;
  float* out = task.out + row / task.group * task.out_stride + row % task.group * job.v_dim;
  const float* merged = job.merged + row * job.v_padded;
  const float sum = fold_sum(_mm512_loadu_ps(job.merged_sum + row * kLanes));
  const __m512 factor = _mm512_set1_ps(sum == 0 ? 0.0f : final_factor(job, row, sum));
  const __m512 zero = _mm512_setzero_ps();
  for (std::size_t d = 0; d < job.v_dim; d += kLanes) {
    const std::size_t left = job.v_dim - d;
    const __mmask16 mask = static_cast<__mmask16>(left >= kLanes ? 0xffffu : (1u << left) - 1u);
    const __m512 value = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(merged + d), factor), zero);
    _mm512_mask_storeu_ps(out + d, mask, sum == 0 ? zero : value);
  }
}

}  // namespace

void attention(const AttentionTask& task) {
  const auto is_direct = [](ElementType type) {
    return type == ElementType::f32 || type == ElementType::f16;
  };
  if (!is_direct(task.layout->k_type) || !is_direct(task.layout->v_type) || task.symmetric_window ||
      task.slopes != nullptr || task.bias_table != nullptr) {
    return scalar::attention(task);
  }
  const Job job = open_job(task);
  const RowBlocks blocks(job.n_rows);
  pack_queries(job, blocks);
  clear_merged(job);
  Tile tiles[2];
  std::size_t chunk = kNoChunk;
  bool found = find_tile(job, 0, tiles[0]);
  for (std::size_t i = 0; found; ++i) {
    const Tile& tile = tiles[i % 2];
    Tile& next = tiles[(i + 1) % 2];
    found = find_tile(job, tile.place + kTilePlaces, next);
    if (!mark_visible(job, tile)) continue;
    if (tile.place / kChunkPlaces != chunk) {
      if (chunk != kNoChunk) merge_chunk(job);
      clear_chunk(job);
      chunk = tile.place / kChunkPlaces;
    }
    const Tile* ahead = found ? &next : nullptr;
    score_tile(job, tile, ahead, blocks);
    add_tile_values(job, tile, ahead, blocks);
  }
  if (chunk != kNoChunk) merge_chunk(job);
  for (std::size_t row = 0; row < job.n_rows; ++row) write_output(job, row);
}

}  // namespace quipu::cpu::avx512
