// decode_row and encode_row: argument checks, then the format's codec. The formats are in floats.cpp,
// legacy.cpp, k_quants.cpp and fp4.cpp.
#include "quant/quant.h"

#include <cmath>

#include "base/error.h"
#include "quant/codec.h"

namespace quipu {
namespace {

const quant::RowCodec& codec_of(ElementType type) {
  using Family = const quant::RowCodec* (*)(ElementType);
  for (const Family family :
       {&quant::float_codec, &quant::legacy_codec, &quant::k_codec, &quant::fp4_codec}) {
    if (const quant::RowCodec* codec = family(type)) return *codec;
  }
  fail(ErrorCode::unsupported, "elements of type {} have no float form", info(type).name);
}

void check_sizes(ElementType type, std::size_t n_elements, std::size_t n_bytes) {
  if (const std::size_t expected = row_bytes(type, n_elements); n_bytes != expected) {
    fail(ErrorCode::invalid_argument, "{} elements of type {} take {} bytes, not {}", n_elements,
         info(type).name, expected, n_bytes);
  }
}

void check_values(ElementType type, std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      fail(ErrorCode::invalid_argument, "value {} is {}: {} encodes finite values only", i, values[i],
           info(type).name);
    }
  }
}

void check_importance(std::span<const float> importance, std::size_t n_elements) {
  if (importance.empty()) return;
  if (importance.size() != n_elements) {
    fail(ErrorCode::invalid_argument, "{} importance weights for {} values", importance.size(), n_elements);
  }
  for (std::size_t i = 0; i < importance.size(); ++i) {
    if (!std::isfinite(importance[i]) || importance[i] < 0) {
      fail(ErrorCode::invalid_argument, "importance weight {} is {}: not a finite number from 0 up", i,
           importance[i]);
    }
  }
}

}  // namespace

void decode_row(ElementType type, std::span<const std::byte> bytes, std::span<float> out) {
  const quant::RowCodec& codec = codec_of(type);
  check_sizes(type, out.size(), bytes.size());
  codec.decode(bytes, out);
}

void encode_row(ElementType type, std::span<const float> values, std::span<std::byte> out,
                std::span<const float> importance) {
  const quant::RowCodec& codec = codec_of(type);
  check_sizes(type, values.size(), out.size());
  check_importance(importance, values.size());
  if (info(type).block_elements > 1) check_values(type, values);
  codec.encode(values, importance, out);
}

}  // namespace quipu
