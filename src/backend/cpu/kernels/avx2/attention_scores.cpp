// Attention's first half: queries times a tile of keys, and from scores to weights. Lanes are places. Keys of
// block types are multiplied as integers, those of fewer than 8 bits after a page of them has been expanded
// to bytes.
#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/avx2/attention_job.h"
#include "backend/cpu/kernels/avx2/vector_math.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx2 {
namespace {

constexpr float kLowest = -0x1.fffffep+127f;
constexpr std::size_t kVectors = kTilePlaces / kWidth;
constexpr std::size_t kWords = kCellBlock / 4;  // of a block's quants, once they are bytes
constexpr std::size_t kWordBytes = 64;          // a word of each of a page's places

// -- from scores to weights

/// Lanes whose bit is set, of the eight lowest.
__m256 mask_of(std::uint64_t bits) {
  const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i all = _mm256_set1_epi32(static_cast<int>(bits & 0xffu));
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, each), each));
}

__m256 biased(const AttentionTask& task, std::size_t row, __m256i positions, __m256 score) {
  const std::size_t head = row % task.group;
  const __m256i own = _mm256_set1_epi32(task.queries.data()[row / task.group].position);
  const __m256i distance = _mm256_sub_epi32(positions, own);
  if (task.slopes != nullptr) {
    const __m256 size = _mm256_cvtepi32_ps(_mm256_abs_epi32(distance));
    score = _mm256_fnmadd_ps(_mm256_set1_ps(task.slopes[head]), size, score);
  }
  if (task.bias_table != nullptr) {
    const __m256i radius = _mm256_set1_epi32(task.bias_radius);
    const __m256i low = _mm256_sub_epi32(_mm256_setzero_si256(), radius);
    const __m256i clamped = _mm256_min_epi32(_mm256_max_epi32(distance, low), radius);
    const std::size_t n_columns = 2 * static_cast<std::size_t>(task.bias_radius) + 1;
    score = _mm256_add_ps(score, _mm256_i32gather_ps(task.bias_table + head * n_columns,
                                                     _mm256_add_epi32(clamped, radius), sizeof(float)));
  }
  return score;
}

__m256 finished(const AttentionTask& task, std::size_t row, __m256i positions, __m256 dot) {
  __m256 score = _mm256_mul_ps(dot, _mm256_set1_ps(task.scale));
  if (task.soft_cap != 0) {
    const __m256 cap = _mm256_set1_ps(task.soft_cap);
    score = _mm256_mul_ps(cap, tanh(_mm256_div_ps(score, cap)));
  }
  return biased(task, row, positions, score);
}

/// From the dot products of a row and a tile, in job.weights, to weights; rescaling the chunk's output is
/// left to add_values.
void finish_scores(const Job& job, const Tile& tile, std::size_t row) {
  float* weights = job.weights + row * kTilePlaces;
  const std::uint64_t visible = job.visible[row];
  __m256 scores[kVectors];
  Floats16 greatest{_mm256_set1_ps(kLowest), _mm256_set1_ps(kLowest)};
  for (std::size_t i = 0; i < kVectors; ++i) {
    const __m256i positions =
        _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.positions + i * kWidth));
    scores[i] = finished(*job.task, row, positions, _mm256_loadu_ps(weights + i * kWidth));
    __m256& most = i % 2 == 0 ? greatest.low : greatest.high;
    most = select(mask_of(visible >> (i * kWidth)), _mm256_max_ps(most, scores[i]), most);
  }
  const float max = larger(job.max[row], fold_max(greatest));
  const __m256 factor = exp(_mm256_set1_ps(job.max[row] - max));
  Floats16 sum = load_16(job.sum + row * kLanes);
  sum = {_mm256_mul_ps(sum.low, factor), _mm256_mul_ps(sum.high, factor)};
  for (std::size_t i = 0; i < kVectors; ++i) {
    const __m256 all = exp(_mm256_sub_ps(scores[i], _mm256_set1_ps(max)));
    const __m256 weight = _mm256_and_ps(mask_of(visible >> (i * kWidth)), all);
    __m256& part = i % 2 == 0 ? sum.low : sum.high;
    part = _mm256_add_ps(part, weight);
    _mm256_storeu_ps(weights + i * kWidth, weight);
  }
  store_16(job.sum + row * kLanes, sum);
  job.factor[row] = _mm256_cvtss_f32(factor);
  job.max[row] = max;
}

// -- keys of float types

const float* query_row(const Job& job, std::size_t row) {
  const AttentionTask& task = *job.task;
  return task.q + row / task.group * task.q_stride + row % task.group * task.layout->k_dim;
}

/// Dot products of n_rows rows with a tile, into job.weights.
template <ElementType type, std::size_t n_rows>
void score_rows(const Job& job, const Tile& tile, std::size_t first_row) {
  constexpr std::size_t kStep = kPageSlots * (type == ElementType::f32 ? 4 : 2);
  const std::size_t k_dim = job.task->layout->k_dim;
  const float* q[n_rows];
  for (std::size_t r = 0; r < n_rows; ++r) q[r] = query_row(job, first_row + r);
  for (std::size_t page = 0; page < kTilePages; ++page) {
    Floats16 dots[n_rows];
    for (Floats16& dot : dots) dot = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (std::size_t d = 0; d < k_dim; ++d) {
      const Floats16 keys = load_elements<type>(tile.keys[page] + d * kStep);
      for (std::size_t r = 0; r < n_rows; ++r) {
        const __m256 own = _mm256_set1_ps(q[r][d]);
        dots[r].low = _mm256_fmadd_ps(own, keys.low, dots[r].low);
        dots[r].high = _mm256_fmadd_ps(own, keys.high, dots[r].high);
      }
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
      store_16(job.weights + (first_row + r) * kTilePlaces + page * kPageSlots, dots[r]);
    }
  }
}

using ScoreRows = void (*)(const Job&, const Tile&, std::size_t);

template <ElementType type>
constexpr ScoreRows kScoreRows[kRowBlock] = {score_rows<type, 1>, score_rows<type, 2>, score_rows<type, 3>,
                                             score_rows<type, 4>, score_rows<type, 5>, score_rows<type, 6>};

// -- keys of block types

/// Signed bytes of keys, zero point taken off, [word][16 places][4], for each page of a tile.
struct KeyBytes {
  const std::byte* pages[kTilePages];
};

const std::byte* quantized_row(const Job& job, std::size_t row) {
  return reinterpret_cast<const std::byte*>(job.q + row * job.task->layout->k_dim);
}

/// Sums of products of eight places' keys with the same word of a query. The sign of the key goes to the
/// query: products of unsigned with signed bytes have room for 128 * 127.
inline __m256i add_products(__m256i sum, __m256i keys, __m256i magnitudes, __m256i word) {
  const __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(word, keys));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/// Dot products of n_rows rows with a half of a page.
template <std::size_t n_rows>
void score_half_page(const Job& job, const std::byte* page, const std::byte* quants, std::size_t half,
                     std::size_t first_row, float* out) {
  const std::size_t n_blocks = job.task->layout->k_dim / kCellBlock;
  __m256 dots[n_rows];
  for (__m256& dot : dots) dot = _mm256_setzero_ps();
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const std::byte* x[n_rows];
    __m256i sums[n_rows];
    for (std::size_t r = 0; r < n_rows; ++r) {
      x[r] = quantized_row(job, first_row + r) + b * sizeof(ActivationBlock32);
      sums[r] = _mm256_setzero_si256();
    }
    for (std::size_t w = 0; w < kWords; ++w) {
      const __m256i keys = load(quants + (b * kWords + w) * kWordBytes + 32 * half);
      const __m256i magnitudes = _mm256_abs_epi8(keys);
      for (std::size_t r = 0; r < n_rows; ++r) {
        sums[r] = add_products(sums[r], keys, magnitudes, broadcast(x[r] + 4 * w));
      }
    }
    const std::size_t of_block = (b * kPageSlots + kWidth * half) * 2;
    const __m256 scales = load_halves(page + job.key_parts.scales + of_block);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const __m256 own = broadcast_float(x[r] + offsetof(ActivationBlock32, scale));
      dots[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[r]), _mm256_mul_ps(scales, own), dots[r]);
      if (!job.key_form.has_min) continue;
      const __m256 mins = load_halves(page + job.key_parts.mins + of_block);
      const __m256 sum = _mm256_cvtepi32_ps(broadcast(x[r] + offsetof(ActivationBlock32, sum)));
      dots[r] = _mm256_fmadd_ps(sum, _mm256_mul_ps(mins, own), dots[r]);
    }
  }
  for (std::size_t r = 0; r < n_rows; ++r) _mm256_storeu_ps(out + r * kTilePlaces, dots[r]);
}

using ScoreHalfPage = void (*)(const Job&, const std::byte*, const std::byte*, std::size_t, std::size_t,
                               float*);
constexpr ScoreHalfPage kScoreHalfPage[] = {score_half_page<1>, score_half_page<2>, score_half_page<3>,
                                            score_half_page<4>};
constexpr std::size_t kBlockRows = 4;

/// What a nibble stands for: itself, or an entry of IQ4_NL's table.
__m256i nibble_values(ElementType type) {
  const __m128i table =
      type == ElementType::iq4_nl
          ? _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
          : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm256_broadcastsi128_si256(table);
}

/// 16 in the bytes whose fifth bit is set. `bits` holds the block's bits for each place.
inline __m256i fifth_bits(__m256i bits, std::size_t word) {
  const __m256i lanes = _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
  const __m256i which = _mm256_add_epi8(lanes, _mm256_set1_epi8(static_cast<char>(word / 2)));
  const __m256i selected = _mm256_set1_epi32(word % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010u));
  const __m256i found = _mm256_and_si256(_mm256_shuffle_epi8(bits, which), selected);
  return _mm256_and_si256(_mm256_cmpeq_epi8(found, selected), _mm256_set1_epi8(16));
}

void expand_page(const Job& job, const std::byte* page, std::byte* out) {
  const ElementType type = job.task->layout->k_type;
  const __m256i low = _mm256_set1_epi8(15);
  const __m256i values = nibble_values(type);
  const int zero_point = type == ElementType::iq4_nl ? 0 : job.key_form.zero_point;
  const __m256i zero = _mm256_set1_epi8(static_cast<char>(zero_point));
  const auto expand = [&](__m256i nibbles, __m256i bits, std::size_t word, std::byte* to) {
    __m256i bytes = _mm256_shuffle_epi8(values, nibbles);
    if (job.key_form.has_fifth_bits) bytes = _mm256_or_si256(bytes, fifth_bits(bits, word));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + word * kWordBytes), _mm256_sub_epi8(bytes, zero));
  };
  for (std::size_t b = 0; b < job.task->layout->k_dim / kCellBlock; ++b, out += kWords * kWordBytes) {
    for (std::size_t half = 0; half < 2; ++half) {
      __m256i bits = _mm256_setzero_si256();
      if (job.key_form.has_fifth_bits)
        bits = load(page + job.key_parts.fifth_bits + b * kWordBytes + 32 * half);
      for (std::size_t w = 0; w < kWords / 2; ++w) {
        const __m256i both = load(page + (b * kWords / 2 + w) * kWordBytes + 32 * half);
        expand(_mm256_and_si256(both, low), bits, w, out + 32 * half);
        expand(_mm256_and_si256(_mm256_srli_epi16(both, 4), low), bits, w + kWords / 2, out + 32 * half);
      }
    }
  }
}

KeyBytes key_bytes(const Job& job, const Tile& tile) {
  KeyBytes keys;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    std::byte* expanded = job.keys + i * kPageSlots * job.task->layout->k_dim;
    const bool is_bytes = job.key_form.n_words == kWords;
    if (!is_bytes) expand_page(job, tile.keys[i], expanded);
    keys.pages[i] = is_bytes ? tile.keys[i] : expanded;
  }
  return keys;
}

void score_block_tile(const Job& job, const Tile& tile) {
  const KeyBytes keys = key_bytes(job, tile);
  for_each_block(job, kBlockRows, [&](std::size_t row, std::size_t n) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      kScoreHalfPage[n - 1](job, tile.keys[i / 2], keys.pages[i / 2], i % 2, row,
                            job.weights + row * kTilePlaces + i * kWidth);
    }
  });
}

}  // namespace

void quantize_queries(const Job& job) {
  const QuantizeKernel quantize = quantize_kernel(ActivationFormat::q8_32);
  const std::size_t k_dim = job.task->layout->k_dim;
  static_assert(sizeof(ActivationBlock32) <= kCellBlock * sizeof(float));
  for (std::size_t row = 0; row < job.n_rows; ++row) {
    quantize(query_row(job, row), k_dim, reinterpret_cast<std::byte*>(job.q + row * k_dim));
  }
}

void score_tile(const Job& job, const Tile& tile) {
  if (job.has_key_blocks) {
    score_block_tile(job, tile);
  } else {
    const ElementType type = job.task->layout->k_type;
    const ScoreRows* score = type == ElementType::f32    ? kScoreRows<ElementType::f32>
                             : type == ElementType::bf16 ? kScoreRows<ElementType::bf16>
                                                         : kScoreRows<ElementType::f16>;
    for_each_block(job, kRowBlock, [&](std::size_t row, std::size_t n) { score[n - 1](job, tile, row); });
  }
  for_each_block(job, kRowBlock, [&](std::size_t row, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) finish_scores(job, tile, row + i);
  });
}

}  // namespace quipu::cpu::avx2
