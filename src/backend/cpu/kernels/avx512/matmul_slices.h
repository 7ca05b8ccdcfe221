// From the bits of a panel's slice (kernels/panel.h) to whole planes: one routine for each width of quants.
// pair<j> gives the planes of groups 2j and 2j + 1, unsigned, ready for vpdpbusd.
#pragma once

#include "backend/cpu/kernels/avx512/matmul_tile.h"

namespace quipu::cpu::avx512 {
namespace {

struct Planes {
  __m512i even;
  __m512i odd;
};

/// The four low bits of both halves of each byte.
inline Planes nibbles(__m512i both) {
  const __m512i mask = _mm512_set1_epi8(15);
  return {_mm512_and_si512(both, mask), _mm512_and_si512(_mm512_srli_epi16(both, 4), mask)};
}

/// low | (bits & mask), in one instruction.
inline __m512i merge(__m512i low, __m512i bits, char mask) {
  return _mm512_ternarylogic_epi32(low, bits, _mm512_set1_epi8(mask), 0xf8);
}

/// Moves bits up by `kBy` places, or down where negative; what crosses into a neighbouring byte is masked off
/// later.
template <int kBy>
inline __m512i move_bits(__m512i bits) {
  if constexpr (kBy > 0) return _mm512_slli_epi16(bits, kBy);
  if constexpr (kBy < 0) return _mm512_srli_epi16(bits, -kBy);
  return bits;
}

struct SliceEight {
  static constexpr std::size_t kBytes = 512;
  template <int j>
  static Planes pair(const std::byte* slice) {
    return {load(slice + 128 * j), load(slice + 128 * j + 64)};
  }
};

struct SliceFour {
  static constexpr std::size_t kBytes = 256;
  template <int j>
  static Planes pair(const std::byte* slice) {
    return nibbles(load(slice + 64 * j));
  }
};

struct SliceFive {
  static constexpr std::size_t kBytes = 320;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const Planes low = nibbles(load(slice + 64 * j));
    const __m512i bits = load(slice + 256);
    return {merge(low.even, move_bits<4 - 2 * j>(bits), 16), merge(low.odd, move_bits<3 - 2 * j>(bits), 16)};
  }
};

struct SliceSix {
  static constexpr std::size_t kBytes = 384;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const std::byte* half = slice + 192 * (j / 2);
    const Planes low = nibbles(load(half + 64 * (j % 2)));
    const __m512i bits = load(half + 128);
    return {merge(low.even, move_bits<4 - 4 * (j % 2)>(bits), 48),
            merge(low.odd, move_bits<2 - 4 * (j % 2)>(bits), 48)};
  }
};

struct SliceTwo {
  static constexpr std::size_t kBytes = 128;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const __m512i bits = load(slice + 64 * (j / 2));
    const __m512i mask = _mm512_set1_epi8(3);
    return {_mm512_and_si512(move_bits<-4 * (j % 2)>(bits), mask),
            _mm512_and_si512(move_bits<-4 * (j % 2) - 2>(bits), mask)};
  }
};

struct SliceThree {
  static constexpr std::size_t kBytes = 192;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const Planes low = SliceTwo::pair<j>(slice);
    const __m512i bits = load(slice + 128);
    return {merge(low.even, move_bits<2 - 2 * j>(bits), 4), merge(low.odd, move_bits<1 - 2 * j>(bits), 4)};
  }
};

}  // namespace
}  // namespace quipu::cpu::avx512
