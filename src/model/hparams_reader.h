// Reading hyper-parameters: keys of one architecture with their checks and limits, and the parts of the
// reading. For hparams*.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gguf/metadata.h"
#include "model/hparams.h"

namespace quipu {

/// Limits that keep all later arithmetic far from overflow; published models are well below them.
inline constexpr std::uint32_t kMaxWidth = 1u << 20;
inline constexpr std::uint32_t kMaxLayers = 1u << 12;
inline constexpr std::uint32_t kMaxExperts = 1u << 12;
inline constexpr std::uint32_t kMaxHidden = 1u << 24;
inline constexpr std::uint32_t kMaxPositionBuckets = 128;

/// Reads keys "<architecture>.NAME".
class KeyReader {
 public:
  /// `names`, if given, gets the names of all keys that are asked for.
  KeyReader(const gguf::Metadata& metadata, std::string_view architecture, std::set<std::string>* names)
      : metadata_(metadata), prefix_(std::string(architecture) + "."), names_(names) {}

  std::string key(std::string_view name) const {
    if (names_ != nullptr) names_->emplace(name);
    return prefix_ + std::string(name);
  }

  std::optional<std::uint32_t> u32(std::string_view name) const { return metadata_.get_u32(key(name)); }
  std::uint32_t size(std::string_view name, std::uint32_t max,
                     std::optional<std::uint32_t> fallback = {}) const {
    const std::optional<std::uint32_t> value = u32(name);
    if (!value && !fallback) missing(name);
    return checked(name, value.value_or(fallback.value_or(0)), max);
  }
  /// One for each layer. With `or_none`, layers may have 0.
  std::vector<std::uint32_t> sizes(std::string_view name, std::size_t n_layers, std::uint32_t max,
                                   bool or_none = false) const {
    auto values = metadata_.get_u32_per_layer(key(name), n_layers);
    if (!values) missing(name);
    values->resize(n_layers);
    for (const std::uint32_t value : *values) {
      if (value != 0 || !or_none) checked(name, value, max);
    }
    return *std::move(values);
  }
  float number(std::string_view name, float fallback) const {
    const float value = metadata_.get_f32(key(name)).value_or(fallback);
    if (!std::isfinite(value))
      fail(ErrorCode::bad_file, "{}: key '{}' is {}", metadata_.origin(), key(name), value);
    return value;
  }
  float not_negative(std::string_view name, float fallback) const {
    const float value = number(name, fallback);
    if (value < 0)
      fail(ErrorCode::bad_file, "{}: key '{}' is {}, below 0", metadata_.origin(), key(name), value);
    return value;
  }
  float positive(std::string_view name, std::optional<float> fallback = {}) const {
    if (!fallback && !metadata_.contains(key(name))) missing(name);
    const float value = number(name, fallback.value_or(0));
    if (value <= 0)
      fail(ErrorCode::bad_file, "{}: key '{}' is {}, not above 0", metadata_.origin(), key(name), value);
    return value;
  }
  bool flag(std::string_view name, bool fallback) const {
    return metadata_.get_bool(key(name)).value_or(fallback);
  }
  /// For values that Quipu does not have: names the key and the value.
  template <typename Value>
  [[noreturn]] void unsupported(std::string_view name, const Value& value) const {
    fail(ErrorCode::unsupported, "{}: key '{}' is {}, which is not supported", metadata_.origin(), key(name),
         value);
  }
  const gguf::Metadata& metadata() const { return metadata_; }

 private:
  [[noreturn]] void missing(std::string_view name) const {
    fail(ErrorCode::bad_file, "{}: key '{}' is missing", metadata_.origin(), key(name));
  }
  std::uint32_t checked(std::string_view name, std::uint32_t value, std::uint32_t max) const {
    if (value == 0 || value > max) {
      fail(ErrorCode::bad_file, "{}: key '{}' is {}, outside 1 to {}", metadata_.origin(), key(name), value,
           max);
    }
    return value;
  }

  const gguf::Metadata& metadata_;
  std::string prefix_;
  std::set<std::string>* names_;
};

/// Heads, their widths, and what bounds or biases their scores.
void read_attention(const KeyReader& keys, Hparams& hparams);
void read_rope(const KeyReader& keys, Hparams& hparams);
/// Heads and the cache's widths follow from the ranks; needs the rotation.
void read_latent(const KeyReader& keys, Hparams& hparams);
/// Which layers have windows, and their rotation; needs the rotation.
void read_windows(const KeyReader& keys, Hparams& hparams);
/// Needs the width of the dense layers.
void read_experts(const KeyReader& keys, Hparams& hparams);

}  // namespace quipu
