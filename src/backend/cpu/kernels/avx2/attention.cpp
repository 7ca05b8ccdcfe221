// Attention: the way through the tiles. Scores have a lane for each place (K is stored [dim][16]), outputs a
// lane for each dimension (V is stored [slot][dim]), so that neither needs sums across lanes; they have files
// of their own.
#include <cstring>

#include "backend/cpu/kernels/attention_range.h"
#include "backend/cpu/kernels/avx2/attention_job.h"
#include "backend/cpu/kernels/avx2/vector_math.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx2 {
namespace {

constexpr float kLowest = -0x1.fffffep+127f;
constexpr std::size_t kNoChunk = SIZE_MAX;

// -- which places are seen

/// False if the tile has no pages.
bool load_tile(const Job& job, std::size_t place, Tile& tile) {
  const AttentionTask& task = *job.task;
  const KvLayout& layout = *task.layout;
  const std::byte* any = nullptr;
  tile.place = place;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    const std::size_t index = place / kPageSlots + i;
    const std::int32_t page = index < task.pages.size() ? task.pages.data()[index] : -1;
    tile.keys[i] = nullptr;
    for (std::size_t slot = 0; slot < kPageSlots; ++slot) {
      tile.positions[i * kPageSlots + slot] =
          page < 0 ? kNoCell : task.cell_positions[static_cast<std::size_t>(page) * kPageSlots + slot];
    }
    if (page < 0) continue;
    tile.keys[i] = any = task.cache + static_cast<std::size_t>(page) * layout.page_bytes() +
                         task.kv_head * layout.head_bytes();
  }
  for (std::size_t i = 0; any != nullptr && i < kTilePages; ++i) {
    if (tile.keys[i] == nullptr) tile.keys[i] = any;
    tile.values[i] = tile.keys[i] + layout.k_bytes();
  }
  return any != nullptr;
}

std::uint64_t bits_of(__m256i mask) {
  return static_cast<std::uint64_t>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

std::uint64_t visible_places(const AttentionTask& task, const Tile& tile, const QueryRange& range) {
  const __m256i now = _mm256_set1_epi32(range.position);
  std::uint64_t after = 0, earlier = 0, same = 0, past_last = 0;
  for (std::size_t i = 0; i < kTilePlaces; i += kWidth) {
    const __m256i positions = _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.positions + i));
    after |= bits_of(_mm256_cmpgt_epi32(positions, _mm256_set1_epi32(range.after))) << i;
    earlier |= bits_of(_mm256_cmpgt_epi32(now, positions)) << i;
    same |= bits_of(_mm256_cmpeq_epi32(now, positions)) << i;
    past_last |= bits_of(_mm256_cmpgt_epi32(positions, _mm256_set1_epi32(range.last))) << i;
  }
  if (!task.causal) return after & ~past_last;
  const std::int64_t up_to = range.place - static_cast<std::int64_t>(tile.place) + 1;
  const std::uint64_t not_later = up_to <= 0    ? 0
                                  : up_to >= 64 ? ~std::uint64_t{0}
                                                : (std::uint64_t{1} << up_to) - 1;
  return after & (earlier | (same & not_later));
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

// -- chunks

void clear(const Job& job, float* max, float* sum, float* output) {
  for (std::size_t row = 0; row < job.n_rows; ++row) max[row] = kLowest;
  std::memset(sum, 0, job.n_rows * kLanes * sizeof(float));
  std::memset(output, 0, job.n_rows * job.v_padded * sizeof(float));
}

void merge(float* merged, const float* chunk, std::size_t n, __m256 before, __m256 added) {
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __m256 old = _mm256_mul_ps(_mm256_loadu_ps(merged + i), before);
    _mm256_storeu_ps(merged + i, _mm256_fmadd_ps(_mm256_loadu_ps(chunk + i), added, old));
  }
}

void merge_chunk(const Job& job) {
  for (std::size_t row = 0; row < job.n_rows; ++row) {
    const float max = larger(job.merged_max[row], job.max[row]);
    const __m256 before = exp(_mm256_set1_ps(job.merged_max[row] - max));
    const __m256 added = exp(_mm256_set1_ps(job.max[row] - max));
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
  job.has_key_blocks = is_cache_block_type(layout.k_type);
  if (job.has_key_blocks) {
    job.key_form = cell_block_form(layout.k_type);
    job.key_parts = key_parts(layout.k_type, layout.k_dim);
  }
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
  job.keys = reinterpret_cast<std::byte*>(memory + scratch.keys);
  job.values = memory + scratch.values;
  return job;
}

float exp_of(float x) {
  return _mm256_cvtss_f32(exp(_mm256_set1_ps(x)));
}

float final_factor(const Job& job, std::size_t row, float sum) {
  const AttentionTask& task = *job.task;
  if (task.sinks == nullptr) return 1.0f / sum;
  const float sink = task.sinks[row % task.group];
  const float max = larger(job.merged_max[row], sink);
  const float before = exp_of(job.merged_max[row] - max);
  return before / __builtin_fmaf(sum, before, exp_of(sink - max));
}

void write_output(const Job& job, std::size_t row) {
  const AttentionTask& task = *job.task;
  const std::size_t v_dim = task.layout->v_dim;
  float* out = task.out + row / task.group * task.out_stride + row % task.group * v_dim;
  const float* merged = job.merged + row * job.v_padded;
  const float sum = fold_sum(load_16(job.merged_sum + row * kLanes));
  const __m256 factor = _mm256_set1_ps(sum == 0 ? 0.0f : final_factor(job, row, sum));
  const __m256 zero = _mm256_setzero_ps();
  for (std::size_t d = 0; d < v_dim; d += kWidth) {
    const __m256 value = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(merged + d), factor), zero);
    store_first(out + d, v_dim - d, sum == 0 ? zero : value);
  }
}

void attention(const AttentionTask& task) {
  const Job job = open_job(task);
  if (job.has_key_blocks) quantize_queries(job);
  clear(job, job.merged_max, job.merged_sum, job.merged);
  std::size_t chunk = kNoChunk;
  for (std::size_t place = 0; place < task.pages.size() * kPageSlots; place += kTilePlaces) {
    Tile tile;
    if (!load_tile(job, place, tile) || !mark_visible(job, tile)) continue;
    if (place / kChunkPlaces != chunk) {
      if (chunk != kNoChunk) merge_chunk(job);
      clear(job, job.max, job.sum, job.output);
      chunk = place / kChunkPlaces;
    }
    score_tile(job, tile);
    add_tile_values(job, tile);
  }
  if (chunk != kNoChunk) merge_chunk(job);
  for (std::size_t row = 0; row < job.n_rows; ++row) write_output(job, row);
}

}  // namespace

void add_attention(KernelTable& table) {
  table.attention = attention;
}

}  // namespace quipu::cpu::avx2
