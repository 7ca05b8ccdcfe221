// From the bits of a panel's slice (kernels/panel.h) to whole planes, 8 rows of them: one routine for each
// width of quants. pair<j> gives the planes of groups 2j and 2j + 1, unsigned; kLargest is the largest number
// in them.
#pragma once

#include "backend/cpu/kernels/avx2/lanes.h"

namespace quipu::cpu::avx2 {
namespace {

struct Planes {
  __m256i even;
  __m256i odd;
};

/// The four low bits of both halves of each byte.
inline Planes nibbles(__m256i both) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(both, mask), _mm256_and_si256(_mm256_srli_epi16(both, 4), mask)};
}

/// low | (bits & mask)
inline __m256i merge(__m256i low, __m256i bits, char mask) {
  return _mm256_or_si256(low, _mm256_and_si256(bits, _mm256_set1_epi8(mask)));
}

/// Moves bits up by `kBy` places, or down where negative; what crosses into a neighbouring byte is masked off
/// later.
template <int kBy>
inline __m256i move_bits(__m256i bits) {
  if constexpr (kBy > 0) return _mm256_slli_epi16(bits, kBy);
  if constexpr (kBy < 0) return _mm256_srli_epi16(bits, -kBy);
  return bits;
}

struct SliceEight {
  static constexpr std::size_t kBytes = 512;
  static constexpr int kLargest = 255;
  template <int j>
  static Planes pair(const std::byte* slice) {
    return {load(slice + 128 * j), load(slice + 128 * j + 64)};
  }
};

struct SliceFour {
  static constexpr std::size_t kBytes = 256;
  static constexpr int kLargest = 15;
  template <int j>
  static Planes pair(const std::byte* slice) {
    return nibbles(load(slice + 64 * j));
  }
};

/// The values of IQ4_NL and IQ4_XS, plus 128.
struct NormalTable {
  static constexpr int kLargest = 241;
  static __m128i values() {
    return _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15);
  }
};

/// The values of MXFP4 and NVFP4, plus 16.
struct Fp4Table {
  static constexpr int kLargest = 28;
  static __m128i values() {
    return _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4);
  }
};

template <typename Table>
struct SliceFourTable {
  static constexpr std::size_t kBytes = 256;
  static constexpr int kLargest = Table::kLargest;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const __m256i table = _mm256_broadcastsi128_si256(Table::values());
    const Planes places = nibbles(load(slice + 64 * j));
    return {_mm256_shuffle_epi8(table, places.even), _mm256_shuffle_epi8(table, places.odd)};
  }
};

struct SliceFive {
  static constexpr std::size_t kBytes = 320;
  static constexpr int kLargest = 31;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const Planes low = nibbles(load(slice + 64 + 64 * j));
    const __m256i bits = load(slice);
    return {merge(low.even, move_bits<4 - 2 * j>(bits), 16), merge(low.odd, move_bits<3 - 2 * j>(bits), 16)};
  }
};

struct SliceSix {
  static constexpr std::size_t kBytes = 384;
  static constexpr int kLargest = 63;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const std::byte* half = slice + 192 * (j / 2);
    const Planes low = nibbles(load(half + 64 + 64 * (j % 2)));
    const __m256i bits = load(half);
    return {merge(low.even, move_bits<4 - 4 * (j % 2)>(bits), 48),
            merge(low.odd, move_bits<2 - 4 * (j % 2)>(bits), 48)};
  }
};

struct SliceTwo {
  static constexpr std::size_t kBytes = 128;
  static constexpr int kLargest = 3;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const __m256i bits = load(slice + 64 * (j / 2));
    const __m256i mask = _mm256_set1_epi8(3);
    return {_mm256_and_si256(move_bits<-4 * (j % 2)>(bits), mask),
            _mm256_and_si256(move_bits<-4 * (j % 2) - 2>(bits), mask)};
  }
};

struct SliceThree {
  static constexpr std::size_t kBytes = 192;
  static constexpr int kLargest = 7;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const Planes low = SliceTwo::pair<j>(slice + 64);
    const __m256i bits = load(slice);
    return {merge(low.even, move_bits<2 - 2 * j>(bits), 4), merge(low.odd, move_bits<1 - 2 * j>(bits), 4)};
  }
};

}  // namespace
}  // namespace quipu::cpu::avx2
