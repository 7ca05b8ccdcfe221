// What a format gives to decode_row and encode_row, and the loops over blocks that all formats share.
// Internal to this folder: a new format is a struct with Block, decode and encode, listed in its family's
// file.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "quant/blocks.h"
#include "quant/element_type.h"

namespace quipu::quant {

/// Both take whole blocks, sizes already checked; encode takes finite values, and an importance that is empty
/// or as long as the values, finite and not negative.
struct RowCodec {
  void (*decode)(std::span<const std::byte> bytes, std::span<float> out);
  void (*encode)(std::span<const float> values, std::span<const float> importance, std::span<std::byte> out);
};

/// The codec of `type` if it is of that family, else null.
const RowCodec* float_codec(ElementType type);
const RowCodec* legacy_codec(ElementType type);
const RowCodec* k_codec(ElementType type);
const RowCodec* fp4_codec(ElementType type);

/// Elements to be encoded and the weights of their squared errors, all above zero. In double, so that squares
/// and sums of any float stay finite.
template <std::size_t N>
struct Samples {
  std::array<double, N> x;
  std::array<double, N> w;
};

/// Weights are the importance plus a trace of its mean over the block, so that elements nobody measured do
/// not get arbitrary values; all 1 where there is no importance.
template <std::size_t N>
Samples<N> make_samples(std::span<const float, N> values, std::span<const float> importance) {
  Samples<N> samples;
  double total = 0;
  for (const float weight : importance) total += weight;
  for (std::size_t i = 0; i < N; ++i) {
    samples.x[i] = values[i];
    samples.w[i] = total > 0 ? importance[i] + 1e-6 * total / N : 1.0;
  }
  return samples;
}

template <typename Codec>
void decode_blocks(std::span<const std::byte> bytes, std::span<float> out) {
  using Block = typename Codec::Block;
  constexpr std::size_t kSize = Block::kElements;
  for (std::size_t b = 0; b < out.size() / kSize; ++b) {
    Codec::decode(load_block<Block>(bytes.data() + b * sizeof(Block)),
                  out.subspan(b * kSize).template first<kSize>());
  }
}

template <typename Codec>
void encode_blocks(std::span<const float> values, std::span<const float> importance,
                   std::span<std::byte> out) {
  using Block = typename Codec::Block;
  constexpr std::size_t kSize = Block::kElements;
  for (std::size_t b = 0; b < values.size() / kSize; ++b) {
    const auto block_importance = importance.empty() ? importance : importance.subspan(b * kSize, kSize);
    const Block block =
        Codec::encode(make_samples(values.subspan(b * kSize).template first<kSize>(), block_importance));
    std::memcpy(out.data() + b * sizeof(Block), &block, sizeof block);
  }
}

template <typename Codec>
constexpr RowCodec block_codec() {
  return {&decode_blocks<Codec>, &encode_blocks<Codec>};
}

}  // namespace quipu::quant
