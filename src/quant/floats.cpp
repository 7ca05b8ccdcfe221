// F32, F16 and BF16: one element a block. Encoding rounds to nearest, ties to even; what is too large for F16
// becomes infinite and NaN stays NaN. Importance changes nothing, as each element has its own nearest value.
#include "base/half.h"
#include "quant/codec.h"

namespace quipu::quant {
namespace {

void copy_bytes(void* to, const void* from, std::size_t n) {
  if (n > 0) std::memcpy(to, from, n);  // the pointers of empty spans may be null
}

template <float (*Convert)(std::uint16_t)>
void decode_16(std::span<const std::byte> bytes, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = Convert(load_block<std::uint16_t>(bytes.data() + 2 * i));
}

template <std::uint16_t (*Convert)(float)>
void encode_16(std::span<const float> values, std::span<const float>, std::span<std::byte> out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = Convert(values[i]);
    std::memcpy(out.data() + 2 * i, &bits, sizeof bits);
  }
}

void decode_f32(std::span<const std::byte> bytes, std::span<float> out) {
  copy_bytes(out.data(), bytes.data(), bytes.size());
}

void encode_f32(std::span<const float> values, std::span<const float>, std::span<std::byte> out) {
  copy_bytes(out.data(), values.data(), out.size());
}

constexpr RowCodec kF32{&decode_f32, &encode_f32};
constexpr RowCodec kF16{&decode_16<f16_to_f32>, &encode_16<f32_to_f16>};
constexpr RowCodec kBf16{&decode_16<bf16_to_f32>, &encode_16<f32_to_bf16>};

}  // namespace

const RowCodec* float_codec(ElementType type) {
  switch (type) {
    case ElementType::f32: return &kF32;
    case ElementType::f16: return &kF16;
    case ElementType::bf16: return &kBf16;
    default: return nullptr;
  }
}

}  // namespace quipu::quant
