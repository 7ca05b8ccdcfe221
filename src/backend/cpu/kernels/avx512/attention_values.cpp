// Attention's second half: weights times a tile of values. Lanes are dimensions. Values of block types are
// decoded to float32: Q8_0 on the way where few rows want it, the others, or for many rows, once a tile.
#include <immintrin.h>

#include <cstring>

#include "backend/cpu/kernels/avx512/attention_job.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kHalf = 2;

/// A tile of values: [slot][row_bytes] in each page.
struct ValueRows {
  const std::byte* pages[kTilePages];
  std::size_t row_bytes;
};

inline __m512 broadcast_half(const std::byte* at) {
  std::uint16_t half;
  std::memcpy(&half, at, sizeof half);
  return _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<std::int16_t>(half)));
}

/// Elements [dim, dim + 16 n_vectors) of a row.
template <ElementType type, int n_vectors>
inline void load_values(const std::byte* row, std::size_t dim, __m512 (&values)[n_vectors]) {
  if constexpr (type == ElementType::q8_0) {
    static_assert(n_vectors % 2 == 0);
    const std::byte* block = row + dim / kCellBlock * kCellBlockBytes;
    for (int j = 0; j < n_vectors; j += 2, block += kCellBlockBytes) {
      const __m512 scale = broadcast_half(block);
      for (int i = 0; i < 2; ++i) {
        const __m128i quants = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + kHalf + 16 * i));
        values[j + i] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(quants)), scale);
      }
    }
  } else {
    constexpr std::size_t kSize = type == ElementType::f32 ? 4 : 2;
    for (int j = 0; j < n_vectors; ++j) {
      values[j] = load_elements<type>(row + (dim + static_cast<std::size_t>(j) * kLanes) * kSize);
    }
  }
}

/// output[rows][16 n_vectors dimensions] = output * factor + weights * values, from dimension `dim` on. Pages
/// whose bit is not set in `pages` are not seen by any of the rows. Fetches `ahead`, if not null, on the way:
/// a part of a page for each slot.
template <ElementType type, int n_rows, int n_vectors>
inline void add_values_at(const Job& job, const ValueRows& rows, std::size_t first_row, std::size_t dim,
                          std::uint32_t pages, const Ahead* ahead) {
  const std::size_t ahead_step = ahead == nullptr ? 0 : ahead->bytes / kPageSlots;
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
    const std::byte* row = rows.pages[page];
    for (std::size_t slot = 0; slot < kPageSlots; ++slot, row += rows.row_bytes) {
      for (std::size_t line = 0; line < ahead_step; line += 64)
        prefetch(ahead->at[page] + slot * ahead_step + line);
      __m512 values[n_vectors];
      load_values<type>(row, dim, values);
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
void add_values(const Job& job, const ValueRows& rows, std::size_t first_row, std::uint32_t pages,
                const Ahead* ahead) {
  std::size_t dim = 0;
  for (; dim + 64 <= job.v_padded; dim += 64, ahead = nullptr) {
    add_values_at<type, n_rows, 4>(job, rows, first_row, dim, pages, ahead);
  }
  for (; dim + 32 <= job.v_padded; dim += 32, ahead = nullptr) {
    add_values_at<type, n_rows, 2>(job, rows, first_row, dim, pages, ahead);
  }
  if constexpr (type != ElementType::q8_0) {  // whose rows are whole blocks
    if (dim < job.v_padded) add_values_at<type, n_rows, 1>(job, rows, first_row, dim, pages, ahead);
  }
}

using AddValues = void (*)(const Job&, const ValueRows&, std::size_t, std::uint32_t, const Ahead*);

template <ElementType type>
constexpr AddValues kAddValues[kRowBlock] = {add_values<type, 1>, add_values<type, 2>, add_values<type, 3>,
                                             add_values<type, 4>, add_values<type, 5>, add_values<type, 6>};

const AddValues* add_kernels(ElementType type) {
  switch (type) {
    case ElementType::f16: return kAddValues<ElementType::f16>;
    case ElementType::bf16: return kAddValues<ElementType::bf16>;
    case ElementType::q8_0: return kAddValues<ElementType::q8_0>;
    default: return kAddValues<ElementType::f32>;  // and all that has been expanded
  }
}

// -- from blocks to floats

inline __m512 decoded(__m512i quants, __m512 scale) {
  return _mm512_mul_ps(_mm512_cvtepi32_ps(quants), scale);
}

/// Two vectors of quants, zero point taken off, from a block's 16 bytes of nibbles.
struct QuantPair {
  __m512i low, high;
};

inline QuantPair nibbles(const std::byte* at) {
  const __m512i both = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  return {_mm512_and_si512(both, _mm512_set1_epi32(15)), _mm512_srli_epi32(both, 4)};
}

inline QuantPair with_fifth_bits(QuantPair quants, const std::byte* at) {
  std::uint32_t bits;
  std::memcpy(&bits, at, sizeof bits);
  const __m512i sixteen = _mm512_set1_epi32(16);
  return {_mm512_mask_add_epi32(quants.low, static_cast<__mmask16>(bits), quants.low, sixteen),
          _mm512_mask_add_epi32(quants.high, static_cast<__mmask16>(bits >> 16), quants.high, sixteen)};
}

inline QuantPair less(QuantPair quants, int zero_point) {
  const __m512i zero = _mm512_set1_epi32(zero_point);
  return {_mm512_sub_epi32(quants.low, zero), _mm512_sub_epi32(quants.high, zero)};
}

inline QuantPair looked_up(QuantPair quants) {
  const __m512i table =
      _mm512_setr_epi32(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
  return {_mm512_permutexvar_epi32(quants.low, table), _mm512_permutexvar_epi32(quants.high, table)};
}

inline QuantPair bytes(const std::byte* at) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))),
          _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16)))};
}

template <ElementType type>
inline void expand_block(const std::byte* block, float* out) {
  constexpr bool kHasMin = type == ElementType::q4_1 || type == ElementType::q5_1;
  constexpr bool kHasFifthBits = type == ElementType::q5_0 || type == ElementType::q5_1;
  constexpr std::size_t kFifthBits = kHalf + (kHasMin ? kHalf : 0);
  constexpr std::size_t kQuants = kFifthBits + (kHasFifthBits ? 4 : 0);
  QuantPair quants;
  if constexpr (type == ElementType::q8_0) {
    quants = bytes(block + kQuants);
  } else {
    quants = nibbles(block + kQuants);
  }
  if constexpr (kHasFifthBits) quants = with_fifth_bits(quants, block + kFifthBits);
  if constexpr (type == ElementType::q4_0) quants = less(quants, 8);
  if constexpr (type == ElementType::q5_0) quants = less(quants, 16);
  if constexpr (type == ElementType::iq4_nl) quants = looked_up(quants);
  const __m512 scale = broadcast_half(block);
  __m512 low = decoded(quants.low, scale);
  __m512 high = decoded(quants.high, scale);
  if constexpr (kHasMin) {
    const __m512 min = broadcast_half(block + kHalf);
    low = _mm512_add_ps(low, min);
    high = _mm512_add_ps(high, min);
  }
  _mm512_storeu_ps(out, low);
  _mm512_storeu_ps(out + kLanes, high);
}

/// A page of values, [slot][v_dim].
template <ElementType type>
void expand_page(const Job& job, const std::byte* values, float* out) {
  const std::size_t n_blocks = job.v_dim / kCellBlock;
  const std::size_t block_bytes = job.v_row_bytes / n_blocks;
  for (std::size_t i = 0; i < kPageSlots * n_blocks; ++i) {
    expand_block<type>(values + i * block_bytes, out + i * kCellBlock);
  }
}

using ExpandPage = void (*)(const Job&, const std::byte*, float*);

ExpandPage page_expander(ElementType type) {
  switch (type) {
    case ElementType::q8_0: return expand_page<ElementType::q8_0>;
    case ElementType::q5_1: return expand_page<ElementType::q5_1>;
    case ElementType::q5_0: return expand_page<ElementType::q5_0>;
    case ElementType::q4_1: return expand_page<ElementType::q4_1>;
    case ElementType::q4_0: return expand_page<ElementType::q4_0>;
    case ElementType::iq4_nl: return expand_page<ElementType::iq4_nl>;
    default: return nullptr;
  }
}

std::uint32_t pages_of(std::uint64_t places) {
  std::uint32_t pages = 0;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    if (((places >> (i * kPageSlots)) & 0xffffu) != 0) pages |= 1u << i;
  }
  return pages;
}

/// The tile's values as floats in the scratch.
ValueRows expand_tile(const Job& job, const Tile& tile, ExpandPage expand) {
  ValueRows rows;
  rows.row_bytes = job.v_padded * sizeof(float);
  const std::uint32_t pages = pages_of(seen_by(job, 0, job.n_rows));
  for (std::size_t i = 0; i < kTilePages; ++i) {
    float* page = job.values + i * kPageSlots * job.v_padded;
    if (((pages >> i) & 1u) != 0) expand(job, tile.values[i], page);
    rows.pages[i] = reinterpret_cast<const std::byte*>(page);
  }
  return rows;
}

}  // namespace

void add_tile_values(const Job& job, const Tile& tile, const Tile* next, const RowBlocks& blocks) {
  constexpr std::size_t kFewBlocks = 2;  // for which decoding Q8_0 on the way is less work than storing it
  ElementType type = job.task->layout->v_type;
  ValueRows rows{{tile.values[0], tile.values[1], tile.values[2], tile.values[3]}, job.v_row_bytes};
  const ExpandPage expand = page_expander(type);
  if (expand != nullptr && (type != ElementType::q8_0 || blocks.count > kFewBlocks)) {
    rows = expand_tile(job, tile, expand);
    type = ElementType::f32;
  }
  const AddValues* add = add_kernels(type);
  const Ahead values = next == nullptr ? Ahead{} : Ahead{next->values, job.v_bytes};
  const Ahead* ahead = next == nullptr ? nullptr : &values;
  blocks.for_each([&](std::size_t row, std::size_t n) {
    const std::uint32_t pages = pages_of(seen_by(job, row, n));
    if (pages == 0) return;
    add[n - 1](job, rows, row, pages, ahead);
    ahead = nullptr;
  });
}

}  // namespace quipu::cpu::avx512
