// Bit shuffling of the block formats: quants and integer scales between their stored and their plain form.
// What the bits mean is said at the declarations in blocks.h.
#include "quant/blocks.h"

namespace quipu {
namespace {

std::uint8_t byte(unsigned value) {
  return static_cast<std::uint8_t>(value);
}

// Nibbles of `n` elements: byte i holds elements i and i + n / 2.
void unpack_nibbles(const std::uint8_t* qs, std::size_t n, std::uint8_t* quants) {
  for (std::size_t i = 0; i < n / 2; ++i) {
    quants[i] = byte(qs[i] & 15u);
    quants[i + n / 2] = byte(qs[i] >> 4u);
  }
}

void pack_nibbles(const std::uint8_t* quants, std::size_t n, std::uint8_t* qs) {
  for (std::size_t i = 0; i < n / 2; ++i) qs[i] = byte((quants[i] & 15u) | (quants[i + n / 2] & 15u) << 4u);
}

Quants32 unpack_nibbles(const std::array<std::uint8_t, 16>& qs) {
  Quants32 quants;
  unpack_nibbles(qs.data(), 32, quants.data());
  return quants;
}

void pack_nibbles(const Quants32& quants, std::array<std::uint8_t, 16>& qs) {
  pack_nibbles(quants.data(), 32, qs.data());
}

// The fifth bits of 32 elements: one 32-bit number, bit i for element i.
void add_fifth_bits(const std::array<std::uint8_t, 4>& qh, Quants32& quants) {
  for (std::size_t i = 0; i < 32; ++i) quants[i] = byte(quants[i] | (qh[i / 8] >> i % 8 & 1u) << 4u);
}

void pack_fifth_bits(const Quants32& quants, std::array<std::uint8_t, 4>& qh) {
  qh.fill(0);
  for (std::size_t i = 0; i < 32; ++i) qh[i / 8] = byte(qh[i / 8] | (quants[i] >> 4u & 1u) << i % 8);
}

// Planes of 256 elements, `Bits` each: a stretch of 32 * 8 / Bits elements shares 32 bytes, its k-th run of
// 32 elements the k-th group of bits. Adds the plane to `quants` at bit `at`.
template <unsigned Bits>
void add_planes(const std::uint8_t* plane, unsigned at, Quants256& quants) {
  constexpr std::size_t kStretch = 32 * 8 / Bits;
  constexpr unsigned kMask = (1u << Bits) - 1;
  for (std::size_t run = 0; run < 256; run += 32) {
    const std::uint8_t* bytes = plane + run / kStretch * 32;
    const unsigned shift = static_cast<unsigned>(run % kStretch / 32) * Bits;
    for (std::size_t i = 0; i < 32; ++i) {
      quants[run + i] = byte(quants[run + i] | (bytes[i] >> shift & kMask) << at);
    }
  }
}

template <unsigned Bits>
void pack_planes(const Quants256& quants, unsigned at, std::uint8_t* plane) {
  constexpr std::size_t kStretch = 32 * 8 / Bits;
  constexpr unsigned kMask = (1u << Bits) - 1;
  std::memset(plane, 0, 256 * Bits / 8);
  for (std::size_t run = 0; run < 256; run += 32) {
    std::uint8_t* bytes = plane + run / kStretch * 32;
    const unsigned shift = static_cast<unsigned>(run % kStretch / 32) * Bits;
    for (std::size_t i = 0; i < 32; ++i) {
      bytes[i] = byte(bytes[i] | (quants[run + i] >> at & kMask) << shift);
    }
  }
}

// The twelve bytes of 6-bit scales and mins that Q4_K and Q5_K share.
std::array<SubScale, 8> unpack_six_bits(const std::array<std::uint8_t, 12>& scales) {
  std::array<SubScale, 8> runs;
  for (std::size_t j = 0; j < 4; ++j) {
    const unsigned both = scales[8 + j];
    runs[j] = {byte(scales[j] & 63u), byte(scales[4 + j] & 63u)};
    runs[4 + j] = {byte((both & 15u) | (scales[j] >> 6u) << 4u),
                   byte(both >> 4u | (scales[4 + j] >> 6u) << 4u)};
  }
  return runs;
}

void pack_six_bits(const std::array<SubScale, 8>& runs, std::array<std::uint8_t, 12>& scales) {
  for (std::size_t j = 0; j < 4; ++j) {
    const SubScale low = runs[j];
    const SubScale high = runs[4 + j];
    scales[j] = byte((low.scale & 63u) | (high.scale >> 4u & 3u) << 6u);
    scales[4 + j] = byte((low.min & 63u) | (high.min >> 4u & 3u) << 6u);
    scales[8 + j] = byte((high.scale & 15u) | (high.min & 15u) << 4u);
  }
}

}  // namespace

Quants32 unpack_quants(const BlockQ4_0& block) {
  return unpack_nibbles(block.qs);
}
Quants32 unpack_quants(const BlockQ4_1& block) {
  return unpack_nibbles(block.qs);
}

Quants32 unpack_quants(const BlockIQ4_NL& block) {
  return unpack_nibbles(block.qs);
}

Quants32 unpack_quants(const BlockQ5_0& block) {
  Quants32 quants = unpack_nibbles(block.qs);
  add_fifth_bits(block.qh, quants);
  return quants;
}

Quants32 unpack_quants(const BlockQ5_1& block) {
  Quants32 quants = unpack_nibbles(block.qs);
  add_fifth_bits(block.qh, quants);
  return quants;
}

Quants256 unpack_quants(const BlockQ2_K& block) {
  Quants256 quants{};
  add_planes<2>(block.qs.data(), 0, quants);
  return quants;
}

Quants256 unpack_quants(const BlockQ3_K& block) {
  Quants256 quants{};
  add_planes<2>(block.qs.data(), 0, quants);
  add_planes<1>(block.hmask.data(), 2, quants);
  return quants;
}

Quants256 unpack_quants(const BlockQ4_K& block) {
  Quants256 quants{};
  add_planes<4>(block.qs.data(), 0, quants);
  return quants;
}

Quants256 unpack_quants(const BlockQ5_K& block) {
  Quants256 quants{};
  add_planes<4>(block.qs.data(), 0, quants);
  add_planes<1>(block.qh.data(), 4, quants);
  return quants;
}

Quants256 unpack_quants(const BlockQ6_K& block) {
  Quants256 quants{};
  add_planes<2>(block.qh.data(), 4, quants);
  for (std::size_t e = 0; e < 256; ++e) {
    const unsigned pair = block.ql[64 * (e / 128) + e % 64];
    quants[e] = byte(quants[e] | (e % 128 < 64 ? pair & 15u : pair >> 4u));
  }
  return quants;
}

Quants256 unpack_quants(const BlockIQ4_XS& block) {
  Quants256 quants;
  for (std::size_t e = 0; e < 256; e += 32) unpack_nibbles(block.qs.data() + e / 2, 32, quants.data() + e);
  return quants;
}

Quants32 unpack_quants(const BlockMXFP4& block) {
  return unpack_nibbles(block.qs);
}

Quants64 unpack_quants(const BlockNVFP4& block) {
  Quants64 quants;
  for (std::size_t e = 0; e < 64; e += 16) unpack_nibbles(block.qs.data() + e / 2, 16, quants.data() + e);
  return quants;
}

void pack_quants(const Quants32& quants, BlockQ4_0& block) {
  pack_nibbles(quants, block.qs);
}
void pack_quants(const Quants32& quants, BlockQ4_1& block) {
  pack_nibbles(quants, block.qs);
}

void pack_quants(const Quants32& quants, BlockIQ4_NL& block) {
  pack_nibbles(quants, block.qs);
}

void pack_quants(const Quants32& quants, BlockQ5_0& block) {
  pack_nibbles(quants, block.qs);
  pack_fifth_bits(quants, block.qh);
}

void pack_quants(const Quants32& quants, BlockQ5_1& block) {
  pack_nibbles(quants, block.qs);
  pack_fifth_bits(quants, block.qh);
}

void pack_quants(const Quants256& quants, BlockQ2_K& block) {
  pack_planes<2>(quants, 0, block.qs.data());
}

void pack_quants(const Quants256& quants, BlockQ3_K& block) {
  pack_planes<2>(quants, 0, block.qs.data());
  pack_planes<1>(quants, 2, block.hmask.data());
}

void pack_quants(const Quants256& quants, BlockQ4_K& block) {
  pack_planes<4>(quants, 0, block.qs.data());
}

void pack_quants(const Quants256& quants, BlockQ5_K& block) {
  pack_planes<4>(quants, 0, block.qs.data());
  pack_planes<1>(quants, 4, block.qh.data());
}

void pack_quants(const Quants256& quants, BlockQ6_K& block) {
  pack_planes<2>(quants, 4, block.qh.data());
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t low = 128 * half + i;
      block.ql[64 * half + i] = byte((quants[low] & 15u) | (quants[low + 64] & 15u) << 4u);
    }
  }
}

void pack_quants(const Quants256& quants, BlockIQ4_XS& block) {
  for (std::size_t e = 0; e < 256; e += 32) pack_nibbles(quants.data() + e, 32, block.qs.data() + e / 2);
}

void pack_quants(const Quants32& quants, BlockMXFP4& block) {
  pack_nibbles(quants, block.qs);
}

void pack_quants(const Quants64& quants, BlockNVFP4& block) {
  for (std::size_t e = 0; e < 64; e += 16) pack_nibbles(quants.data() + e, 16, block.qs.data() + e / 2);
}

std::array<SubScale, 16> unpack_scales(const BlockQ2_K& block) {
  std::array<SubScale, 16> runs;
  for (std::size_t j = 0; j < 16; ++j) runs[j] = {byte(block.scales[j] & 15u), byte(block.scales[j] >> 4u)};
  return runs;
}

std::array<SubScale, 8> unpack_scales(const BlockQ4_K& block) {
  return unpack_six_bits(block.scales);
}
std::array<SubScale, 8> unpack_scales(const BlockQ5_K& block) {
  return unpack_six_bits(block.scales);
}

std::array<std::int8_t, 16> unpack_scales(const BlockQ3_K& block) {
  std::array<std::int8_t, 16> runs;
  for (std::size_t j = 0; j < 16; ++j) {
    const unsigned low = block.scales[j % 8] >> 4 * (j / 8) & 15u;
    const unsigned high = block.scales[8 + j % 4] >> 2 * (j / 4) & 3u;
    runs[j] = static_cast<std::int8_t>(static_cast<int>(low | high << 4u) - 32);
  }
  return runs;
}

std::array<std::int8_t, 16> unpack_scales(const BlockQ6_K& block) {
  return block.scales;
}

std::array<std::int8_t, 8> unpack_scales(const BlockIQ4_XS& block) {
  std::array<std::int8_t, 8> runs;
  for (std::size_t j = 0; j < 8; ++j) {
    const unsigned low = block.scales_l[j / 2] >> 4 * (j % 2) & 15u;
    const unsigned high = block.scales_h >> 2 * j & 3u;
    runs[j] = static_cast<std::int8_t>(static_cast<int>(low | high << 4u) - 32);
  }
  return runs;
}

void pack_scales(const std::array<SubScale, 16>& scales, BlockQ2_K& block) {
  for (std::size_t j = 0; j < 16; ++j) {
    block.scales[j] = byte((scales[j].scale & 15u) | (scales[j].min & 15u) << 4u);
  }
}

void pack_scales(const std::array<SubScale, 8>& scales, BlockQ4_K& block) {
  pack_six_bits(scales, block.scales);
}
void pack_scales(const std::array<SubScale, 8>& scales, BlockQ5_K& block) {
  pack_six_bits(scales, block.scales);
}

void pack_scales(const std::array<std::int8_t, 16>& scales, BlockQ3_K& block) {
  block.scales.fill(0);
  for (std::size_t j = 0; j < 16; ++j) {
    const unsigned stored = static_cast<unsigned>(scales[j] + 32) & 63u;
    std::uint8_t& low = block.scales[j % 8];
    std::uint8_t& high = block.scales[8 + j % 4];
    low = byte(low | (stored & 15u) << 4 * (j / 8));
    high = byte(high | (stored >> 4u) << 2 * (j / 4));
  }
}

void pack_scales(const std::array<std::int8_t, 16>& scales, BlockQ6_K& block) {
  block.scales = scales;
}

void pack_scales(const std::array<std::int8_t, 8>& scales, BlockIQ4_XS& block) {
  block.scales_h = 0;
  block.scales_l.fill(0);
  for (std::size_t j = 0; j < 8; ++j) {
    const unsigned stored = static_cast<unsigned>(scales[j] + 32) & 63u;
    block.scales_l[j / 2] = byte(block.scales_l[j / 2] | (stored & 15u) << 4 * (j % 2));
    block.scales_h = static_cast<std::uint16_t>(block.scales_h | (stored >> 4u) << 2 * j);
  }
}

}  // namespace quipu
