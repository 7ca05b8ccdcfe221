// The bytes of every block format, and functions that take a block apart and put it together. All numbers are
// little-endian. Formats as laid down by the GGUF files in circulation; docs/block-formats.md draws them.
//
// `quants` below are the stored integers, one for each element in element order, the zero point (kZeroPoint)
// not yet subtracted; so a lossless repacking can keep them unsigned. A block may lie at any address: copy it
// with load_block, the structs are two-byte aligned.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace quipu {

static_assert(std::endian::native == std::endian::little, "blocks are read as they lie in files");

/// Most scales are IEEE halves; `Half` is the bits of one (base/half.h converts).
using Half = std::uint16_t;

// ---- Legacy formats: 32 elements, one scale
// ------------------------------------------------------------------

/// value = d * (q - 8), q of 4 bits. Bytes: d [0,2), qs [2,18): byte i holds element i (low) and i + 16
/// (high).
struct BlockQ4_0 {
  static constexpr std::size_t kElements = 32;
  static constexpr int kQuantMax = 15;
  static constexpr int kZeroPoint = 8;
  Half d;
  std::array<std::uint8_t, 16> qs;
};
static_assert(sizeof(BlockQ4_0) == 18);

/// value = d * q + m, q of 4 bits. Bytes: d [0,2), m [2,4), qs [4,20) as in Q4_0.
struct BlockQ4_1 {
  static constexpr std::size_t kElements = 32;
  static constexpr int kQuantMax = 15;
  static constexpr int kZeroPoint = 0;
  Half d;
  Half m;
  std::array<std::uint8_t, 16> qs;
};
static_assert(sizeof(BlockQ4_1) == 20);

/// value = d * (q - 16), q of 5 bits. Bytes: d [0,2), qh [2,6): bit i, counted from the lowest bit of the
/// first byte, is the top bit of element i; qs [6,22): the low 4 bits as in Q4_0.
struct BlockQ5_0 {
  static constexpr std::size_t kElements = 32;
  static constexpr int kQuantMax = 31;
  static constexpr int kZeroPoint = 16;
  Half d;
  std::array<std::uint8_t, 4> qh;
  std::array<std::uint8_t, 16> qs;
};
static_assert(sizeof(BlockQ5_0) == 22);

/// value = d * q + m, q of 5 bits. Bytes: d [0,2), m [2,4), qh [4,8) and qs [8,24) as in Q5_0.
struct BlockQ5_1 {
  static constexpr std::size_t kElements = 32;
  static constexpr int kQuantMax = 31;
  static constexpr int kZeroPoint = 0;
  Half d;
  Half m;
  std::array<std::uint8_t, 4> qh;
  std::array<std::uint8_t, 16> qs;
};
static_assert(sizeof(BlockQ5_1) == 24);

/// value = d * q, q a signed byte. Bytes: d [0,2), qs [2,34) in element order.
struct BlockQ8_0 {
  static constexpr std::size_t kElements = 32;
  Half d;
  std::array<std::int8_t, 32> qs;
};
static_assert(sizeof(BlockQ8_0) == 34);

/// value = d * kValues[q], q of 4 bits: the steps are finer where numbers of a normal distribution are more
/// frequent. Bytes: d [0,2), qs [2,18) as in Q4_0.
struct BlockIQ4_NL {
  static constexpr std::size_t kElements = 32;
  static constexpr int kQuantMax = 15;
  static constexpr std::array<std::int8_t, 16> kValues = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                          1,    13,   25,  38,  53,  69,  89,  113};
  Half d;
  std::array<std::uint8_t, 16> qs;
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// ---- K formats: 256 elements, integer scales for runs of 16 or 32
// --------------------------------------------

/// The integer scale and minimum of one run of elements.
struct SubScale {
  std::uint8_t scale;
  std::uint8_t min;
};

/// value = d * scale * q - dmin * min, q of 2 bits, runs of 16. Bytes: scales [0,16): one a run, scale in the
/// low and min in the high nibble; qs [16,80): "two-bit planes", element e in byte 32 * (e / 128) + e % 32,
/// bits 2 * (e % 128 / 32) and up; d [80,82), dmin [82,84).
struct BlockQ2_K {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kRun = 16;
  static constexpr int kQuantMax = 3;
  static constexpr int kZeroPoint = 0;
  static constexpr int kScaleMax = 15;
  std::array<std::uint8_t, 16> scales;
  std::array<std::uint8_t, 64> qs;
  Half d;
  Half dmin;
};
static_assert(sizeof(BlockQ2_K) == 84);

/// value = d * scale * (q - 4), q of 3 bits, runs of 16, scale in -32..31. Bytes: hmask [0,32): element e's
/// top bit is bit e / 32 of byte e % 32; qs [32,96): the low two bits, planes as in Q2_K; scales [96,108):
/// sixteen numbers scale + 32 of 6 bits, the low four of run j in nibble j / 8 of byte j % 8, the high two in
/// byte 8 + j % 4, bits 2 * (j / 4) and up; d [108,110).
struct BlockQ3_K {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kRun = 16;
  static constexpr int kQuantMax = 7;
  static constexpr int kZeroPoint = 4;
  static constexpr int kScaleLow = -32;
  static constexpr int kScaleHigh = 31;
  std::array<std::uint8_t, 32> hmask;
  std::array<std::uint8_t, 64> qs;
  std::array<std::uint8_t, 12> scales;
  Half d;
};
static_assert(sizeof(BlockQ3_K) == 110);

/// value = d * scale * q - dmin * min, q of 4 bits, runs of 32. Bytes: d [0,2), dmin [2,4); scales [4,16):
/// eight scales and mins of 6 bits. For run j < 4 byte j holds the scale and byte 4 + j the min in their low
/// six bits. For j >= 4 byte 4 + j holds the low four bits of the scale (low nibble) and of the min (high
/// nibble), and their top two bits are the top bits of bytes j - 4 and j. qs [16,144): "nibble planes",
/// element e in byte 32 * (e / 64) + e % 32, low nibble if e % 64 < 32.
struct BlockQ4_K {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kRun = 32;
  static constexpr int kQuantMax = 15;
  static constexpr int kZeroPoint = 0;
  static constexpr int kScaleMax = 63;
  Half d;
  Half dmin;
  std::array<std::uint8_t, 12> scales;
  std::array<std::uint8_t, 128> qs;
};
static_assert(sizeof(BlockQ4_K) == 144);

/// value = d * scale * q - dmin * min, q of 5 bits, runs of 32. Bytes: d [0,2), dmin [2,4), scales [4,16) as
/// in Q4_K; qh [16,48): element e's top bit is bit e / 32 of byte e % 32; qs [48,176): the low four bits,
/// nibble planes as in Q4_K.
struct BlockQ5_K {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kRun = 32;
  static constexpr int kQuantMax = 31;
  static constexpr int kZeroPoint = 0;
  static constexpr int kScaleMax = 63;
  Half d;
  Half dmin;
  std::array<std::uint8_t, 12> scales;
  std::array<std::uint8_t, 32> qh;
  std::array<std::uint8_t, 128> qs;
};
static_assert(sizeof(BlockQ5_K) == 176);

/// value = d * scale * (q - 32), q of 6 bits, runs of 16, scale a signed byte. Bytes: ql [0,128): the low
/// four bits, element e in byte 64 * (e / 128) + e % 64, low nibble if e % 128 < 64; qh [128,192): the high
/// two bits, two-bit planes as in Q2_K; scales [192,208); d [208,210).
struct BlockQ6_K {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kRun = 16;
  static constexpr int kQuantMax = 63;
  static constexpr int kZeroPoint = 32;
  static constexpr int kScaleLow = -128;
  static constexpr int kScaleHigh = 127;
  std::array<std::uint8_t, 128> ql;
  std::array<std::uint8_t, 64> qh;
  std::array<std::int8_t, 16> scales;
  Half d;
};
static_assert(sizeof(BlockQ6_K) == 210);

/// value = d * scale * kValues[q], q of 4 bits, runs of 32, scale in -32..31. Bytes: d [0,2); scales_h [2,4)
/// and scales_l [4,8): eight numbers scale + 32 of 6 bits, the low four of run j in nibble j % 2 of byte j /
/// 2 of scales_l, the high two in bits 2 j and up of scales_h; qs [8,136): byte 16 j + i holds elements i
/// (low) and i + 16 (high) of run j.
struct BlockIQ4_XS {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kRun = 32;
  static constexpr int kQuantMax = 15;
  static constexpr int kScaleLow = -32;
  static constexpr int kScaleHigh = 31;
  static constexpr std::array<std::int8_t, 16> kValues = BlockIQ4_NL::kValues;
  Half d;
  std::uint16_t scales_h;
  std::array<std::uint8_t, 4> scales_l;
  std::array<std::uint8_t, 128> qs;
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// ---- FP4 formats: each element a float of 4 bits (sign, two bits of exponent, one of fraction), a scale of
// 8
// ----------------------------------------------------------------------------------------------------

/// Twice the numbers that the codes of E2M1 stand for, so that they are integers; code 8 is minus zero.
inline constexpr std::array<std::int8_t, 16> kFp4Values = {0, 1,  2,  3,  4,  6,  8,  12,
                                                           0, -1, -2, -3, -4, -6, -8, -12};

/// Half of what a code of E8M0 stands for: 2^(code - 128). The format's NaN, 255, counts as the power of two
/// that it would be.
constexpr float mxfp4_scale(std::uint8_t code) {
  const std::uint32_t bits = code < 2 ? 0x00200000u << code : (code - 1u) << 23;
  return std::bit_cast<float>(bits);
}

/// Half of what a code of UE4M3 stands for (four bits of exponent with bias 7, three of fraction, no sign:
/// the top bit means nothing). The format's NaN, 127, is 0.
constexpr float nvfp4_scale(std::uint8_t code) {
  if (code == 127) return 0;
  const unsigned exponent = code >> 3u & 15u;
  const float fraction = static_cast<float>(code & 7u);
  if (exponent == 0) return fraction * 0x1p-10f;
  return (8 + fraction) * std::bit_cast<float>((exponent + 116u) << 23);
}

/// value = mxfp4_scale(scale) * kValues[q]. Bytes: scale [0,1); qs [1,17) as in Q4_0. The OCP's MXFP4.
struct BlockMXFP4 {
  static constexpr std::size_t kElements = 32;
  static constexpr int kQuantMax = 15;
  static constexpr std::array<std::int8_t, 16> kValues = kFp4Values;
  std::uint8_t scale;
  std::array<std::uint8_t, 16> qs;
};
static_assert(sizeof(BlockMXFP4) == 17);

/// value = nvfp4_scale(scale) * kValues[q], runs of 16. Bytes: scales [0,4): one a run; qs [4,36): byte 8 j +
/// i holds elements i (low) and i + 8 (high) of run j.
struct BlockNVFP4 {
  static constexpr std::size_t kElements = 64;
  static constexpr std::size_t kRun = 16;
  static constexpr int kQuantMax = 15;
  static constexpr std::array<std::int8_t, 16> kValues = kFp4Values;
  std::array<std::uint8_t, 4> scales;
  std::array<std::uint8_t, 32> qs;
};
static_assert(sizeof(BlockNVFP4) == 36);

// ---- Taking apart and putting together
// -----------------------------------------------------------------------

/// The block at the start of `bytes`, which may be unaligned but must hold a whole one.
template <typename Block>
Block load_block(const std::byte* bytes) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  return block;
}

using Quants32 = std::array<std::uint8_t, 32>;
using Quants64 = std::array<std::uint8_t, 64>;
using Quants256 = std::array<std::uint8_t, 256>;

/// The stored integers in element order, 0..kQuantMax.
Quants32 unpack_quants(const BlockQ4_0& block);
Quants32 unpack_quants(const BlockQ4_1& block);
Quants32 unpack_quants(const BlockQ5_0& block);
Quants32 unpack_quants(const BlockQ5_1& block);
Quants32 unpack_quants(const BlockIQ4_NL& block);
Quants256 unpack_quants(const BlockQ2_K& block);
Quants256 unpack_quants(const BlockQ3_K& block);
Quants256 unpack_quants(const BlockQ4_K& block);
Quants256 unpack_quants(const BlockQ5_K& block);
Quants256 unpack_quants(const BlockQ6_K& block);
Quants256 unpack_quants(const BlockIQ4_XS& block);
Quants32 unpack_quants(const BlockMXFP4& block);
Quants64 unpack_quants(const BlockNVFP4& block);

/// The reverse: overwrites the block's quants (each at most kQuantMax) and nothing else.
void pack_quants(const Quants32& quants, BlockQ4_0& block);
void pack_quants(const Quants32& quants, BlockQ4_1& block);
void pack_quants(const Quants32& quants, BlockQ5_0& block);
void pack_quants(const Quants32& quants, BlockQ5_1& block);
void pack_quants(const Quants32& quants, BlockIQ4_NL& block);
void pack_quants(const Quants256& quants, BlockQ2_K& block);
void pack_quants(const Quants256& quants, BlockQ3_K& block);
void pack_quants(const Quants256& quants, BlockQ4_K& block);
void pack_quants(const Quants256& quants, BlockQ5_K& block);
void pack_quants(const Quants256& quants, BlockQ6_K& block);
void pack_quants(const Quants256& quants, BlockIQ4_XS& block);
void pack_quants(const Quants32& quants, BlockMXFP4& block);
void pack_quants(const Quants64& quants, BlockNVFP4& block);

/// Scales and mins of the runs, 0..kScaleMax.
std::array<SubScale, 16> unpack_scales(const BlockQ2_K& block);
std::array<SubScale, 8> unpack_scales(const BlockQ4_K& block);
std::array<SubScale, 8> unpack_scales(const BlockQ5_K& block);
/// Signed scales of the runs, kScaleLow..kScaleHigh.
std::array<std::int8_t, 16> unpack_scales(const BlockQ3_K& block);
std::array<std::int8_t, 16> unpack_scales(const BlockQ6_K& block);
std::array<std::int8_t, 8> unpack_scales(const BlockIQ4_XS& block);

/// The reverse: overwrites the block's integer scales (each in its range) and nothing else.
void pack_scales(const std::array<SubScale, 16>& scales, BlockQ2_K& block);
void pack_scales(const std::array<SubScale, 8>& scales, BlockQ4_K& block);
void pack_scales(const std::array<SubScale, 8>& scales, BlockQ5_K& block);
void pack_scales(const std::array<std::int8_t, 16>& scales, BlockQ3_K& block);
void pack_scales(const std::array<std::int8_t, 16>& scales, BlockQ6_K& block);
void pack_scales(const std::array<std::int8_t, 8>& scales, BlockIQ4_XS& block);

}  // namespace quipu
