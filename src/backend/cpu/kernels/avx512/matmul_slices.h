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
  static constexpr bool kIsCostly = false;
  template <int j>
  static Planes pair(const std::byte* slice) {
    return {load(slice + 128 * j), load(slice + 128 * j + 64)};
  }
};

struct SliceFour {
  static constexpr std::size_t kBytes = 256;
  static constexpr bool kIsCostly = false;
  template <int j>
  static Planes pair(const std::byte* slice) {
    return nibbles(load(slice + 64 * j));
  }
};

/// The values of IQ4_NL and IQ4_XS, plus 128.
struct NormalTable {
  static __m128i values() {
    return _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15);
  }
};

/// The values of MXFP4 and NVFP4, plus 16.
struct Fp4Table {
  static __m128i values() {
    return _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4);
  }
};

template <typename Table>
struct SliceFourTable {
  static constexpr std::size_t kBytes = 256;
  static constexpr bool kIsCostly = false;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const __m512i table = _mm512_broadcast_i32x4(Table::values());
    const Planes places = nibbles(load(slice + 64 * j));
    return {_mm512_shuffle_epi8(table, places.even), _mm512_shuffle_epi8(table, places.odd)};
  }
};

struct SliceFive {
  static constexpr std::size_t kBytes = 320;
  static constexpr bool kIsCostly = true;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const Planes low = nibbles(load(slice + 64 + 64 * j));
    const __m512i bits = load(slice);
    return {merge(low.even, move_bits<4 - 2 * j>(bits), 16), merge(low.odd, move_bits<3 - 2 * j>(bits), 16)};
  }
};

struct SliceSix {
  static constexpr std::size_t kBytes = 384;
  static constexpr bool kIsCostly = true;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const std::byte* half = slice + 192 * (j / 2);
    const Planes low = nibbles(load(half + 64 + 64 * (j % 2)));
    const __m512i bits = load(half);
    return {merge(low.even, move_bits<4 - 4 * (j % 2)>(bits), 48),
            merge(low.odd, move_bits<2 - 4 * (j % 2)>(bits), 48)};
  }
};

struct SliceTwo {
  static constexpr std::size_t kBytes = 128;
  static constexpr bool kIsCostly = false;
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
  static constexpr bool kIsCostly = true;
  template <int j>
  static Planes pair(const std::byte* slice) {
    const Planes low = SliceTwo::pair<j>(slice + 64);
    const __m512i bits = load(slice);
    return {merge(low.even, move_bits<2 - 2 * j>(bits), 4), merge(low.odd, move_bits<1 - 2 * j>(bits), 4)};
  }
};

/// sum += (planes of groups 2j, 2j + 1 of a slice) . activations
template <typename Slice, int j, std::size_t kPanels, std::size_t kTokens>
[[gnu::always_inline]] inline void add_pair(const std::byte* const (&slice)[kPanels], const std::byte* x,
                                            std::size_t stride, __m512i (&sum)[kPanels][kTokens]) {
  Planes planes[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) planes[p] = Slice::template pair<j>(slice[p]);
  for (std::size_t t = 0; t < kTokens; ++t) {
    const __m512i y = broadcast(x + t * stride + 8 * j);
    for (std::size_t p = 0; p < kPanels; ++p) sum[p][t] = _mm512_dpbusd_epi32(sum[p][t], planes[p].even, y);
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    const __m512i y = broadcast(x + t * stride + 8 * j + 4);
    for (std::size_t p = 0; p < kPanels; ++p) sum[p][t] = _mm512_dpbusd_epi32(sum[p][t], planes[p].odd, y);
  }
}

template <typename Slice, int j>
inline void expand_pair(const std::byte* slice, std::byte* to) {
  const Planes planes = Slice::template pair<j>(slice);
  _mm512_store_si512(to + 128 * j, planes.even);
  _mm512_store_si512(to + 128 * j + 64, planes.odd);
}

/// The quants of some blocks as slices of whole bytes, scales left out.
template <typename Weight>
void expand_blocks(const std::byte* block, std::size_t n_blocks, std::byte* to) {
  using Slice = typename Weight::Slice;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    for (std::size_t i = 0; i < Weight::kLayout.elements / 32; ++i) {
      const std::byte* slice = block + Weight::kLayout.quants + i * Slice::kBytes;
      expand_pair<Slice, 0>(slice, to);
      expand_pair<Slice, 1>(slice, to);
      expand_pair<Slice, 2>(slice, to);
      expand_pair<Slice, 3>(slice, to);
      to += SliceEight::kBytes;
    }
    block += Weight::kLayout.bytes;
  }
}

/// A weight whose quants were expanded.
template <typename Weight>
struct Expanded : Weight {
  using Slice = SliceEight;
  static constexpr bool kIsExpanded = true;
  static constexpr std::size_t kQuantBytes = Weight::kLayout.elements * kPanelRows;
};

}  // namespace
}  // namespace quipu::cpu::avx512
