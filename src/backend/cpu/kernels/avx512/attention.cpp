// Attention for up to six query rows at a time in registers. Scores have a lane for each place (K is stored
// [dim][16]), outputs a lane for each dimension (V is stored [slot][dim]), so that neither needs sums across
// lanes. A tile of keys serves all rows of the task, then the tile of values does: each stays in the
// first-level cache meanwhile. Here is the way through the tiles; scores and values have files of their own.
#include <immintrin.h>

#include <cstring>

#include "backend/cpu/kernels/avx512/attention_job.h"
#include "backend/cpu/kernels/avx512/vector_math.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr float kLowest = -0x1.fffffep+127f;
constexpr std::size_t kNoChunk = SIZE_MAX;

// -- which places are seen

/// False if no query of the task can see any of the tile's cells.
bool load_tile(const Job& job, std::size_t place, Tile& tile) {
  const AttentionTask& task = *job.task;
  const std::byte* any = nullptr;
  __m512i greatest = _mm512_set1_epi32(kNoCell);
  __m512i least = _mm512_set1_epi32(kNoCell);  // as unsigned numbers, where "no cell" is the greatest
  __m512i first = _mm512_set1_epi32(INT32_MAX);
  tile.place = place;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    const std::size_t index = place / kPageSlots + i;
    const std::int32_t page = index < task.pages.size() ? task.pages.data()[index] : -1;
    tile.keys[i] = nullptr;
    tile.positions[i] = _mm512_set1_epi32(kNoCell);
    if (page < 0) {
      first = tile.positions[i];
      continue;
    }
    const std::size_t number = static_cast<std::size_t>(page);
    tile.keys[i] = any = task.cache + number * job.page_bytes + job.head_offset;
    tile.positions[i] = _mm512_loadu_si512(task.cell_positions + number * kPageSlots);
    greatest = _mm512_max_epi32(greatest, tile.positions[i]);
    least = _mm512_min_epu32(least, tile.positions[i]);
    first = _mm512_min_epi32(first, tile.positions[i]);
  }
  tile.first_position = _mm512_reduce_min_epi32(first);
  tile.last_position = _mm512_reduce_max_epi32(greatest);
  if (any == nullptr || tile.last_position <= job.least_after) return false;
  const std::uint32_t least_position = _mm512_reduce_min_epu32(least);
  if (least_position > static_cast<std::uint32_t>(job.greatest_last)) return false;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    if (tile.keys[i] == nullptr) tile.keys[i] = any;
    tile.values[i] = tile.keys[i] + job.k_bytes;
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

std::uint64_t visible_places(const AttentionTask& task, const Tile& tile, const QueryRange& range) {
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
    } else {
      mask &= _mm512_cmple_epi32_mask(positions, _mm512_set1_epi32(range.last));
    }
    visible |= static_cast<std::uint64_t>(mask) << (i * kPageSlots);
  }
  return visible;
}

/// Sets the rows' bits; false if all are zero.
bool mark_visible(const Job& job, const Tile& tile) {
  const AttentionTask& task = *job.task;
  if (tile.first_position > job.greatest_after && tile.last_position < job.least_last) {
    for (std::size_t i = 0; i < job.n_rows; ++i) job.visible[i] = UINT64_MAX;
    return true;
  }
  std::uint64_t any = 0;
  std::uint64_t* row = job.visible;
  for (std::size_t query = 0; query < task.queries.size(); ++query) {
    const std::uint64_t visible = visible_places(task, tile, range_of(task, query));
    any |= visible;
    for (std::size_t head = 0; head < task.group; ++head) *row++ = visible;
  }
  return any != 0;
}

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

// -- the whole task

Job open_job(const AttentionTask& task) {
  const KvLayout& layout = *task.layout;
  const AttentionScratch scratch(layout, task.queries.size(), task.group);
  float* memory = reinterpret_cast<float*>(task.scratch.data());
  Job job{};
  job.task = &task;
  job.n_rows = task.queries.size() * task.group;
  job.page_bytes = layout.page_bytes();
  job.head_offset = task.kv_head * layout.head_bytes();
  job.k_dim = layout.k_dim;
  job.k_bytes = layout.k_bytes();
  job.has_key_blocks = is_cache_block_type(layout.k_type);
  if (job.has_key_blocks) {
    job.key_form = cell_block_form(layout.k_type);
    job.key_parts = key_parts(layout.k_type, layout.k_dim);
  }
  job.v_dim = layout.v_dim;
  job.v_bytes = layout.v_bytes();
  job.v_row_bytes = layout.v_row_bytes();
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
  job.least_after = job.least_last = INT32_MAX;
  job.greatest_after = kNoCell;
  job.quantized = reinterpret_cast<std::byte*>(memory + scratch.quantized);
  job.keys = reinterpret_cast<std::byte*>(memory + scratch.keys);
  job.values = memory + scratch.values;
  job.greatest_last = 0;
  for (std::size_t query = 0; query < task.queries.size(); ++query) {
    const QueryRange range = range_of(task, query);
    if (range.after < job.least_after) job.least_after = range.after;
    if (range.after > job.greatest_after) job.greatest_after = range.after;
    if (range.last < job.least_last) job.least_last = range.last;
    if (range.last > job.greatest_last) job.greatest_last = range.last;
  }
  return job;
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

void attention(const AttentionTask& task) {
  const Job job = open_job(task);
  const RowBlocks blocks(job.n_rows);
  prepare_queries(job, blocks);
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

}  // namespace

void add_attention(KernelTable& table) {
  table.attention = attention;
}

}  // namespace quipu::cpu::avx512
