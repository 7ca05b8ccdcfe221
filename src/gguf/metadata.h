// Key/value metadata of a GGUF file: typed values in file order, with getters that say what is wrong.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gguf/name_index.h"
#include "quipu/types.h"

namespace quipu::gguf {

/// Numbers as in the file.
enum class ValueType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
std::string_view name(ValueType type);

/// An array of one element type. Booleans are kept as bytes 0 or 1 in their own wrapper type.
struct Bool {
  bool value;
  bool operator==(const Bool&) const = default;
};
using Array =
    CopySafeVariant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                    std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                    std::vector<float>, std::vector<Bool>, std::vector<std::string>,
                    std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;
using Value =
    std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float,
                 bool, std::string, Array, std::uint64_t, std::int64_t, double>;

ValueType type_of(const Value& value);
ValueType element_type_of(const Array& array);
std::size_t size(const Array& array);
/// One line for people: strings quoted and shortened to `max_chars`, arrays by type, length and first
/// elements.
std::string to_display(const Value& value, std::size_t max_chars = 60);

/// The getters return nothing for an absent key and throw Error(bad_file) "key 'K': expected T, found U" for
/// a value of another kind or out of range. Integers of any width serve each other, as do f32 and f64, and an
/// integer serves as a float; booleans and strings stand alone.
class Metadata {
 public:
  /// `origin` (a file name) begins every error message.
  explicit Metadata(std::string origin = "metadata") : origin_(std::move(origin)) {}

  /// Room for this many keys without growing on the way; only while there are none.
  void reserve(std::size_t n_keys);
  /// Adds or replaces.
  void set(std::string key, Value value);
  const Value* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  const std::vector<std::pair<std::string, Value>>& entries() const { return entries_; }
  const std::string& origin() const { return origin_; }

  std::optional<std::uint32_t> get_u32(std::string_view key) const;
  std::optional<std::int64_t> get_i64(std::string_view key) const;
  std::optional<float> get_f32(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  /// The string itself, or null if absent.
  const std::string* get_string(std::string_view key) const;
  /// Arrays are converted element by element by the rules above; null or empty optional if absent.
  const std::vector<std::string>* get_strings(std::string_view key) const;
  std::optional<std::vector<std::uint32_t>> get_u32s(std::string_view key) const;
  std::optional<std::vector<std::int32_t>> get_i32s(std::string_view key) const;
  std::optional<std::vector<float>> get_f32s(std::string_view key) const;
  /// A per-layer figure: a scalar counts for every layer, an array must have `n_layers` or more elements.
  /// Allocates for `n_layers`, so a count that comes from a file must have been checked against something.
  std::optional<std::vector<std::uint32_t>> get_u32_per_layer(std::string_view key,
                                                              std::size_t n_layers) const;

 private:
  std::string origin_;
  std::vector<std::pair<std::string, Value>> entries_;
  NameIndex index_;  // key -> place in entries_
};

}  // namespace quipu::gguf
