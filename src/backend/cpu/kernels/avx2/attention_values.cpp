// Attention's second half: weights times a tile of values. Lanes are dimensions. Values of block types are
// decoded to float32, once a tile.
#include "backend/cpu/kernels/avx2/attention_job.h"

namespace quipu::cpu::avx2 {
namespace {

constexpr std::size_t kHalf = 2;

/// A tile of values: [slot][row_bytes] in each page.
struct ValueRows {
  const std::byte* pages[kTilePages];
  std::size_t row_bytes;
};

/// The pages that have one of the places.
std::uint32_t pages_of(std::uint64_t places) {
  std::uint32_t pages = 0;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    if (((places >> (i * kPageSlots)) & 0xffffu) != 0) pages |= 1u << i;
  }
  return pages;
}

std::uint32_t pages_of(const Job& job, std::size_t row, std::size_t n) {
  std::uint64_t places = 0;
  for (std::size_t i = 0; i < n; ++i) places |= job.visible[row + i];
  return pages_of(places);
}

/// output[rows][v_padded] = output * factor + weights * values, 16 dimensions at a time.
template <ElementType type, std::size_t n_rows>
void add_values(const Job& job, const ValueRows& rows, std::size_t first_row) {
  constexpr std::size_t kSize = type == ElementType::f32 ? 4 : 2;
  const std::uint32_t pages = pages_of(job, first_row, n_rows);
  const float* weights = job.weights + first_row * kTilePlaces;
  for (std::size_t dim = 0; dim < job.v_padded; dim += kLanes) {
    float* output = job.output + first_row * job.v_padded + dim;
    Floats16 sums[n_rows];
    for (std::size_t r = 0; r < n_rows; ++r) {
      const __m256 factor = _mm256_set1_ps(job.factor[first_row + r]);
      sums[r] = load_16(output + r * job.v_padded);
      sums[r] = {_mm256_mul_ps(sums[r].low, factor), _mm256_mul_ps(sums[r].high, factor)};
    }
    for (std::size_t page = 0; page < kTilePages; ++page) {
      if (((pages >> page) & 1u) == 0) continue;
      const std::byte* at = rows.pages[page] + dim * kSize;
      for (std::size_t slot = 0; slot < kPageSlots; ++slot, at += rows.row_bytes) {
        const Floats16 values = load_elements<type>(at);
        for (std::size_t r = 0; r < n_rows; ++r) {
          const __m256 weight = _mm256_set1_ps(weights[r * kTilePlaces + page * kPageSlots + slot]);
          sums[r].low = _mm256_fmadd_ps(weight, values.low, sums[r].low);
          sums[r].high = _mm256_fmadd_ps(weight, values.high, sums[r].high);
        }
      }
    }
    for (std::size_t r = 0; r < n_rows; ++r) store_16(output + r * job.v_padded, sums[r]);
  }
}

using AddValues = void (*)(const Job&, const ValueRows&, std::size_t);

template <ElementType type>
constexpr AddValues kAddValues[kRowBlock] = {add_values<type, 1>, add_values<type, 2>, add_values<type, 3>,
                                             add_values<type, 4>, add_values<type, 5>, add_values<type, 6>};

// -- from blocks to floats

inline __m256 broadcast_half(const std::byte* at) {
  std::int16_t half;
  __builtin_memcpy(&half, at, sizeof half);
  return _mm256_cvtph_ps(_mm_set1_epi16(half));
}

template <ElementType type>
struct Block {
  static constexpr bool kHasMin = type == ElementType::q4_1 || type == ElementType::q5_1;
  static constexpr bool kHasFifthBits = type == ElementType::q5_0 || type == ElementType::q5_1;
  static constexpr std::size_t kFifthBits = kHalf + (kHasMin ? kHalf : 0);
  static constexpr std::size_t kQuants = kFifthBits + (kHasFifthBits ? 4 : 0);
  static constexpr int kZeroPoint = type == ElementType::q4_0 ? 8 : type == ElementType::q5_0 ? 16 : 0;

  /// Elements 8 i to 8 i + 7, zero point taken off.
  static __m256i quants(const std::byte* block, std::size_t i) {
    if constexpr (type == ElementType::q8_0)
      return _mm256_cvtepi8_epi32(load_quarter(block + kQuants + kWidth * i));
    const __m128i both = load_quarter(block + kQuants + kWidth * (i % 2));
    const __m128i nibbles = _mm_and_si128(i < 2 ? both : _mm_srli_epi16(both, 4), _mm_set1_epi8(15));
    if constexpr (type == ElementType::iq4_nl) {
      const __m128i table =
          _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
      return _mm256_cvtepi8_epi32(_mm_shuffle_epi8(table, nibbles));
    }
    __m256i quants = _mm256_cvtepu8_epi32(nibbles);
    if constexpr (kHasFifthBits) {
      const __m256i places = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                              _mm256_set1_epi32(static_cast<int>(kWidth * i)));
      const __m256i bits = _mm256_srlv_epi32(broadcast(block + kFifthBits), places);
      quants = _mm256_or_si256(quants, _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(1)), 4));
    }
    return _mm256_sub_epi32(quants, _mm256_set1_epi32(kZeroPoint));
  }

  static void expand(const std::byte* block, float* out) {
    const __m256 scale = broadcast_half(block);
    for (std::size_t i = 0; i < kCellBlock / kWidth; ++i) {
      __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(quants(block, i)), scale);
      if constexpr (kHasMin) value = _mm256_add_ps(value, broadcast_half(block + kHalf));
      _mm256_storeu_ps(out + kWidth * i, value);
    }
  }
};

/// A page of values, [slot][v_dim].
template <ElementType type>
void expand_page(const Job& job, const std::byte* values, float* out) {
  const KvLayout& layout = *job.task->layout;
  const std::size_t n_blocks = layout.v_dim / kCellBlock;
  const std::size_t block_bytes = layout.v_row_bytes() / n_blocks;
  for (std::size_t i = 0; i < kPageSlots * n_blocks; ++i) {
    Block<type>::expand(values + i * block_bytes, out + i * kCellBlock);
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

const AddValues* add_kernels(ElementType type) {
  switch (type) {
    case ElementType::f16: return kAddValues<ElementType::f16>;
    case ElementType::bf16: return kAddValues<ElementType::bf16>;
    default: return kAddValues<ElementType::f32>;  // and all that has been expanded
  }
}

/// The tile's values as floats in the scratch.
ValueRows expand_tile(const Job& job, const Tile& tile, ExpandPage expand) {
  ValueRows rows;
  rows.row_bytes = job.v_padded * sizeof(float);
  const std::uint32_t pages = pages_of(job, 0, job.n_rows);
  for (std::size_t i = 0; i < kTilePages; ++i) {
    float* page = job.values + i * kPageSlots * job.v_padded;
    if (((pages >> i) & 1u) != 0) expand(job, tile.values[i], page);
    rows.pages[i] = reinterpret_cast<const std::byte*>(page);
  }
  return rows;
}

}  // namespace

void add_tile_values(const Job& job, const Tile& tile) {
  const KvLayout& layout = *job.task->layout;
  ValueRows rows{{tile.values[0], tile.values[1], tile.values[2], tile.values[3]}, layout.v_row_bytes()};
  if (const ExpandPage expand = page_expander(layout.v_type)) rows = expand_tile(job, tile, expand);
  const AddValues* add = add_kernels(layout.v_type);
  for_each_block(job, kRowBlock, [&](std::size_t row, std::size_t n) { add[n - 1](job, rows, row); });
}

}  // namespace quipu::cpu::avx2
