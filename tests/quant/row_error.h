// Round trips through an encoding, and how far they end from where they began.
#pragma once

#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "quant/quant.h"

namespace quipu::test {

inline std::vector<std::byte> encode(ElementType type, std::span<const float> values,
                                     std::span<const float> importance = {}) {
  std::vector<std::byte> bytes(row_bytes(type, values.size()));
  encode_row(type, values, bytes, importance);
  return bytes;
}

inline std::vector<float> decode(ElementType type, std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / info(type).block_bytes * info(type).block_elements);
  decode_row(type, bytes, values);
  return values;
}

inline std::vector<float> round_trip(ElementType type, std::span<const float> values,
                                     std::span<const float> importance = {}) {
  return decode(type, encode(type, values, importance));
}

/// sqrt(sum w (a - b)^2 / sum w b^2), w = 1 where there are no weights.
inline double relative_error(std::span<const float> a, std::span<const float> b,
                             std::span<const float> weights = {}) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double w = weights.empty() ? 1.0 : weights[i];
    difference += w * std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += w * std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

inline double round_trip_error(ElementType type, std::span<const float> values) {
  return relative_error(round_trip(type, values), values);
}

/// Normally distributed, the same for the same seed.
inline std::vector<float> normal_values(std::size_t n, unsigned seed, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = normal(generator);
  return values;
}

/// The types whose blocks hold more than one element.
inline std::vector<ElementType> block_types() {
  std::vector<ElementType> types;
  for (const ElementTypeInfo& each : all_element_types()) {
    if (each.decodable && each.block_elements > 1) types.push_back(each.type);
  }
  return types;
}

inline std::vector<ElementType> decodable_types() {
  std::vector<ElementType> types;
  for (const ElementTypeInfo& each : all_element_types()) {
    if (each.decodable) types.push_back(each.type);
  }
  return types;
}

/// For names of parametrized tests.
inline std::string type_name(ElementType type) {
  return std::string(info(type).name);
}

}  // namespace quipu::test
