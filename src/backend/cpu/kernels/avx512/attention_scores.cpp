// Attention's first half: queries times a tile of keys, and from scores to weights. Lanes are places. Keys of
// block types are multiplied as integers, those of fewer than 8 bits after a tile of them has been expanded
// to bytes.
#include <immintrin.h>

#include <cstddef>
#include <cstring>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/avx512/attention_job.h"
#include "backend/cpu/kernels/avx512/vector_math.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr float kLowest = -0x1.fffffep+127f;
constexpr std::size_t kWords = kCellBlock / 4;  // of a block's quants, once they are bytes
constexpr std::size_t kWordBytes = 64;          // a word of each of a page's places

// -- from scores to weights

void cap_scores(__m512 (&scores)[kTilePages], float soft_cap) {
  const __m512 cap = _mm512_set1_ps(soft_cap);
  for (__m512& score : scores) score = _mm512_mul_ps(cap, tanh(_mm512_div_ps(score, cap)));
}

void add_biases(const Job& job, const Tile& tile, std::size_t row, __m512 (&scores)[kTilePages]) {
  const AttentionTask& task = *job.task;
  const std::size_t head = row % task.group;
  const __m512i own = _mm512_set1_epi32(task.queries.data()[row / task.group].position);
  for (std::size_t i = 0; i < kTilePages; ++i) {
    const __m512i distance = _mm512_sub_epi32(tile.positions[i], own);
    if (task.slopes != nullptr) {
      const __m512 size = _mm512_cvtepi32_ps(_mm512_abs_epi32(distance));
      scores[i] = _mm512_fnmadd_ps(_mm512_set1_ps(task.slopes[head]), size, scores[i]);
    }
    if (task.bias_table != nullptr) {
      const __m512i radius = _mm512_set1_epi32(task.bias_radius);
      const __m512i low = _mm512_sub_epi32(_mm512_setzero_si512(), radius);
      const __m512i clamped = _mm512_min_epi32(_mm512_max_epi32(distance, low), radius);
      const std::size_t n_columns = 2 * static_cast<std::size_t>(task.bias_radius) + 1;
      const __m512 bias = _mm512_i32gather_ps(_mm512_add_epi32(clamped, radius),
                                              task.bias_table + head * n_columns, sizeof(float));
      scores[i] = _mm512_add_ps(scores[i], bias);
    }
  }
}

/// From the dot products of a row and a tile to weights; rescaling the chunk's output is left to add_values.
inline void finish_scores(const Job& job, const Tile& tile, std::size_t row,
                          const __m512 (&dots)[kTilePages]) {
  const __m512 scale = _mm512_set1_ps(job.task->scale);
  const std::uint64_t visible = job.visible[row];
  __mmask16 mask[kTilePages];
  __m512 scores[kTilePages];
  for (std::size_t i = 0; i < kTilePages; ++i) {
    mask[i] = static_cast<__mmask16>(visible >> (i * kPageSlots));
    scores[i] = _mm512_mul_ps(dots[i], scale);
  }
  if (job.task->soft_cap != 0) cap_scores(scores, job.task->soft_cap);
  if (job.task->slopes != nullptr || job.task->bias_table != nullptr) add_biases(job, tile, row, scores);
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

// -- keys of float types

/// The queries of the task's rows, one after the other; they stay where they are.
const float** query_rows(const Job& job) {
  return reinterpret_cast<const float**>(job.q);
}

/// Fetches `ahead`, if not null, on the way: a part of each of its pages for some dimensions.
template <ElementType type, int n_rows>
void score_rows(const Job& job, const Tile& tile, std::size_t first_row, const Ahead* ahead) {
  constexpr std::size_t kStep = kPageSlots * (type == ElementType::f32 ? 4 : 2);
  constexpr std::size_t kStretch = 16;  // dimensions
  __m512 dots[n_rows][kTilePages];
  for (auto& row : dots) {
    for (auto& vector : row) vector = _mm512_setzero_ps();
  }
  const float* q[n_rows];
  for (int r = 0; r < n_rows; ++r) q[r] = query_rows(job)[first_row + static_cast<std::size_t>(r)];
  for (std::size_t first = 0; first < job.k_dim; first += kStretch) {
    const std::size_t end = job.k_dim - first < kStretch ? job.k_dim : first + kStretch;
    if (ahead != nullptr) {
      for (std::size_t i = 0; i < kTilePages; ++i) {
        for (std::size_t at = first * kStep; at < end * kStep; at += 64) prefetch(ahead->at[i] + at);
      }
    }
    for (std::size_t d = first; d < end; ++d) {
      __m512 keys[kTilePages];
      for (std::size_t i = 0; i < kTilePages; ++i) keys[i] = load_elements<type>(tile.keys[i] + d * kStep);
      for (int r = 0; r < n_rows; ++r) {
        const __m512 broadcast = _mm512_set1_ps(q[r][d]);
        for (std::size_t i = 0; i < kTilePages; ++i)
          dots[r][i] = _mm512_fmadd_ps(broadcast, keys[i], dots[r][i]);
      }
    }
  }
  for (int r = 0; r < n_rows; ++r) {
    __m512 row[kTilePages];  // a copy: an array whose address is taken would not stay in registers above
    for (std::size_t i = 0; i < kTilePages; ++i) row[i] = dots[r][i];
    finish_scores(job, tile, first_row + static_cast<std::size_t>(r), row);
  }
}

using ScoreRows = void (*)(const Job&, const Tile&, std::size_t, const Ahead*);

template <ElementType type>
constexpr ScoreRows kScoreRows[kRowBlock] = {score_rows<type, 1>, score_rows<type, 2>, score_rows<type, 3>,
                                             score_rows<type, 4>, score_rows<type, 5>, score_rows<type, 6>};

// -- keys of block types

/// What a block of n query rows is made of: 11 words for each row, in the order [word of 4 quants][n], then
/// what the zero point takes off the sums [n], scales [n], sums of the quants as floats [n].
constexpr std::size_t kStartAt = kWords;
constexpr std::size_t kScaleAt = kWords + 1;
constexpr std::size_t kSumAt = kWords + 2;
constexpr std::size_t kQueryWords = kWords + 3;

std::size_t query_bytes(const Job& job) {
  return job.k_dim / kCellBlock * kQueryWords * 4;
}

/// Where the block of rows that starts with `first_row` has its blocks.
std::byte* quantized_rows(const Job& job, std::size_t first_row) {
  return reinterpret_cast<std::byte*>(job.q) + first_row * query_bytes(job);
}

/// Quantizes row r of a block of n rows into `out`.
void quantize_row(const Job& job, const float* q, std::size_t r, std::size_t n, std::byte* out) {
  quantize_kernel(ActivationFormat::q8_32)(q, job.k_dim, job.quantized);
  for (std::size_t b = 0; b < job.k_dim / kCellBlock; ++b, out += kQueryWords * n * 4) {
    const std::byte* block = job.quantized + b * sizeof(ActivationBlock32);
    float scale;
    std::int32_t sum;
    std::memcpy(&scale, block + offsetof(ActivationBlock32, scale), sizeof scale);
    std::memcpy(&sum, block + offsetof(ActivationBlock32, sum), sizeof sum);
    const std::int32_t start = -job.key_form.zero_point * sum;
    const float float_sum = static_cast<float>(sum);
    for (std::size_t w = 0; w < kWords; ++w) std::memcpy(out + (w * n + r) * 4, block + 4 * w, 4);
    std::memcpy(out + (kStartAt * n + r) * 4, &start, 4);
    std::memcpy(out + (kScaleAt * n + r) * 4, &scale, 4);
    std::memcpy(out + (kSumAt * n + r) * 4, &float_sum, 4);
  }
}

/// Bytes of keys [word][16 places][4], for each page of a tile; the quants plus their zero point, once each
/// byte is exclusive-or'ed with `flip`.
struct KeyBytes {
  const std::byte* pages[kTilePages];
  __m512i flip;
};

inline __m512i broadcast_word(const std::byte* at) {
  std::int32_t word;
  std::memcpy(&word, at, sizeof word);
  return _mm512_set1_epi32(word);
}

inline __m512 broadcast_float(const std::byte* at) {
  float number;
  std::memcpy(&number, at, sizeof number);
  return _mm512_set1_ps(number);
}

/// Dot products of n_rows rows with two pages of keys.
template <int n_rows, bool has_min>
inline void score_two_pages(const Job& job, const Tile& tile, const KeyBytes& keys, std::size_t page,
                            const std::byte* q, const Ahead* ahead, __m512 (&dots)[n_rows][kTilePages]) {
  constexpr std::size_t kStep = static_cast<std::size_t>(n_rows) * 4;
  const std::size_t n_blocks = job.k_dim / kCellBlock;
  const std::byte* quants[2] = {keys.pages[page], keys.pages[page + 1]};
  const std::byte* scales[2];
  const std::byte* mins[2];
  for (std::size_t i = 0; i < 2; ++i) {
    scales[i] = tile.keys[page + i] + job.key_parts.scales;
    mins[i] = tile.keys[page + i] + job.key_parts.mins;
  }
  __m512 sums[n_rows][2];
  for (auto& row : sums) row[0] = row[1] = _mm512_setzero_ps();
  for (std::size_t b = 0; b < n_blocks; ++b, q += kQueryWords * kStep) {
    if (ahead != nullptr) prefetch_share(*ahead, b, n_blocks);
    __m512i isum[n_rows][2];
    for (int r = 0; r < n_rows; ++r) {
      isum[r][0] = isum[r][1] = broadcast_word(q + kStartAt * kStep + static_cast<std::size_t>(r) * 4);
    }
    for (std::size_t w = 0; w < kWords; ++w) {
      __m512i bytes[2];
      for (std::size_t i = 0; i < 2; ++i) {
        bytes[i] = _mm512_xor_si512(_mm512_loadu_si512(quants[i]), keys.flip);
        quants[i] += kWordBytes;
      }
      for (int r = 0; r < n_rows; ++r) {
        const __m512i four = broadcast_word(q + w * kStep + static_cast<std::size_t>(r) * 4);
        for (std::size_t i = 0; i < 2; ++i) isum[r][i] = _mm512_dpbusd_epi32(isum[r][i], bytes[i], four);
      }
    }
    __m512 scale[2];
    for (std::size_t i = 0; i < 2; ++i) scale[i] = load_halves(scales[i] + b * kPageSlots * 2);
    for (int r = 0; r < n_rows; ++r) {
      const __m512 own = broadcast_float(q + kScaleAt * kStep + static_cast<std::size_t>(r) * 4);
      for (std::size_t i = 0; i < 2; ++i) {
        sums[r][i] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum[r][i]), _mm512_mul_ps(scale[i], own), sums[r][i]);
      }
    }
    if constexpr (has_min) {
      for (std::size_t i = 0; i < 2; ++i) scale[i] = load_halves(mins[i] + b * kPageSlots * 2);
      for (int r = 0; r < n_rows; ++r) {
        const __m512 own = broadcast_float(q + kScaleAt * kStep + static_cast<std::size_t>(r) * 4);
        const __m512 sum = broadcast_float(q + kSumAt * kStep + static_cast<std::size_t>(r) * 4);
        for (std::size_t i = 0; i < 2; ++i) {
          sums[r][i] = _mm512_fmadd_ps(sum, _mm512_mul_ps(scale[i], own), sums[r][i]);
        }
      }
    }
  }
  for (int r = 0; r < n_rows; ++r) {
    for (std::size_t i = 0; i < 2; ++i) dots[r][page + i] = sums[r][i];
  }
}

template <int n_rows, bool has_min>
void score_block_rows(const Job& job, const Tile& tile, const KeyBytes& keys, std::size_t first_row,
                      const Ahead* ahead) {
  const std::byte* q = quantized_rows(job, first_row);
  __m512 dots[n_rows][kTilePages];
  score_two_pages<n_rows, has_min>(job, tile, keys, 0, q, ahead, dots);
  score_two_pages<n_rows, has_min>(job, tile, keys, 2, q, nullptr, dots);
  for (int r = 0; r < n_rows; ++r) finish_scores(job, tile, first_row + static_cast<std::size_t>(r), dots[r]);
}

using ScoreBlockRows = void (*)(const Job&, const Tile&, const KeyBytes&, std::size_t, const Ahead*);

template <bool has_min>
constexpr ScoreBlockRows kScoreBlockRows[kRowBlock] = {
    score_block_rows<1, has_min>, score_block_rows<2, has_min>, score_block_rows<3, has_min>,
    score_block_rows<4, has_min>, score_block_rows<5, has_min>, score_block_rows<6, has_min>};

// -- from nibbles to bytes

/// What a nibble stands for, zero point added: itself, or an entry of IQ4_NL's table plus 128.
__m512i nibble_values(ElementType type) {
  const __m128i table =
      type == ElementType::iq4_nl
          ? _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15)
          : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_broadcast_i32x4(table);
}

/// 16 in the bytes whose fifth bit is set. `bits` holds the block's bits for each place.
inline __m512i fifth_bits(__m512i bits, std::size_t word) {
  const __m512i lanes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
  const __m512i which = _mm512_add_epi8(lanes, _mm512_set1_epi8(static_cast<char>(word / 2)));
  const __m512i select = _mm512_set1_epi32(word % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010u));
  const __mmask64 set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(bits, which), select);
  return _mm512_maskz_set1_epi8(set, 16);
}

void expand_page(const Job& job, const std::byte* page, std::byte* out) {
  const __m512i low = _mm512_set1_epi8(15);
  const __m512i values = nibble_values(job.task->layout->k_type);
  const bool has_fifth_bits = job.key_form.has_fifth_bits;
  for (std::size_t b = 0; b < job.k_dim / kCellBlock; ++b, out += kWords * kWordBytes) {
    __m512i bits = _mm512_setzero_si512();
    if (has_fifth_bits) bits = _mm512_loadu_si512(page + job.key_parts.fifth_bits + b * kWordBytes);
    for (std::size_t w = 0; w < kWords / 2; ++w) {
      const __m512i both = _mm512_loadu_si512(page + (b * kWords / 2 + w) * kWordBytes);
      __m512i first = _mm512_shuffle_epi8(values, _mm512_and_si512(both, low));
      __m512i second = _mm512_shuffle_epi8(values, _mm512_and_si512(_mm512_srli_epi16(both, 4), low));
      if (has_fifth_bits) {
        first = _mm512_or_si512(first, fifth_bits(bits, w));
        second = _mm512_or_si512(second, fifth_bits(bits, w + kWords / 2));
      }
      _mm512_storeu_si512(out + w * kWordBytes, first);
      _mm512_storeu_si512(out + (w + kWords / 2) * kWordBytes, second);
    }
  }
}

KeyBytes key_bytes(const Job& job, const Tile& tile) {
  KeyBytes keys;
  const bool is_bytes = job.key_form.n_words == kWords;
  keys.flip = _mm512_set1_epi8(static_cast<char>(is_bytes ? 0x80 : 0));
  for (std::size_t i = 0; i < kTilePages; ++i) {
    std::byte* expanded = job.keys + i * kPageSlots * job.k_dim;
    if (!is_bytes) expand_page(job, tile.keys[i], expanded);
    keys.pages[i] = is_bytes ? tile.keys[i] : expanded;
  }
  return keys;
}

}  // namespace

void prepare_queries(const Job& job, const RowBlocks& blocks) {
  const AttentionTask& task = *job.task;
  blocks.for_each([&](std::size_t first, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t row = first + i;
      const float* q = task.q + row / task.group * task.q_stride + row % task.group * job.k_dim;
      if (job.has_key_blocks) {
        quantize_row(job, q, i, n, quantized_rows(job, first));
      } else {
        query_rows(job)[row] = q;
      }
    }
  });
}

void score_tile(const Job& job, const Tile& tile, const Tile* next, const RowBlocks& blocks) {
  const Ahead keys = next == nullptr ? Ahead{} : Ahead{next->keys, job.k_bytes};
  const Ahead* ahead = next == nullptr ? nullptr : &keys;
  const auto for_each_seen = [&](auto score) {
    blocks.for_each([&](std::size_t row, std::size_t n) {
      if (seen_by(job, row, n) == 0) return;
      score(row, n);
      ahead = nullptr;
    });
  };
  if (job.has_key_blocks) {
    const KeyBytes bytes = key_bytes(job, tile);
    const ScoreBlockRows* score = job.key_form.has_min ? kScoreBlockRows<true> : kScoreBlockRows<false>;
    for_each_seen([&](std::size_t row, std::size_t n) { score[n - 1](job, tile, bytes, row, ahead); });
    return;
  }
  const ElementType type = job.task->layout->k_type;
  const ScoreRows* score = type == ElementType::f32    ? kScoreRows<ElementType::f32>
                           : type == ElementType::bf16 ? kScoreRows<ElementType::bf16>
                                                       : kScoreRows<ElementType::f16>;
  for_each_seen([&](std::size_t row, std::size_t n) { score[n - 1](job, tile, row, ahead); });
}

}  // namespace quipu::cpu::avx512
