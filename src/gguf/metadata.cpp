// The typed getters of Metadata: one conversion rule for all of them, and errors that name the key.
#include "gguf/metadata.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "gguf/display.h"

namespace quipu::gguf {
namespace {

template <typename T>
constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <typename T>
constexpr bool is_number = is_integer<T> || std::is_floating_point_v<T>;

/// Whether a value of kind From may be asked for as To at all.
template <typename To, typename From>
constexpr bool converts =
    std::is_same_v<To, From> || (is_integer<To> ? is_integer<From> : is_number<To> && is_number<From>);

/// The value as a To; nothing if it is out of To's range.
template <typename To, typename From>
std::optional<To> converted(From from) {
  if constexpr (is_integer<To> && is_integer<From>) {
    if (!std::in_range<To>(from)) return std::nullopt;
  } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>) {
    if (std::isfinite(from) && std::abs(from) > std::numeric_limits<float>::max()) return std::nullopt;
  }
  return static_cast<To>(from);
}

template <typename T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, std::uint32_t>) return "u32";
  if constexpr (std::is_same_v<T, std::int32_t>) return "i32";
  if constexpr (std::is_same_v<T, std::int64_t>) return "i64";
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, std::string>) return "string";
}

std::string kind_of(const Value& value) {
  const Array* array = std::get_if<Array>(&value);
  if (array == nullptr) return std::string(name(type_of(value)));
  return fmt::format("array of {}", name(element_type_of(*array)));
}

/// The context that an error of a getter needs.
struct Asked {
  const Metadata& metadata;
  std::string_view key;

  [[noreturn]] void fail_kind(std::string_view expected, const Value& value) const {
    fail(ErrorCode::bad_file, "{}: key '{}': expected {}, found {}", metadata.origin(), printable(key),
         expected, kind_of(value));
  }
  template <typename From>
  [[noreturn]] void fail_range(From from, std::string_view expected) const {
    fail(ErrorCode::bad_file, "{}: key '{}': {} is out of range for {}", metadata.origin(), printable(key),
         +from, expected);
  }
};

template <typename To>
std::optional<To> get_scalar(const Metadata& metadata, std::string_view key) {
  const Value* value = metadata.find(key);
  if (value == nullptr) return std::nullopt;
  const Asked asked{metadata, key};
  return std::visit(
      [&](const auto& held) -> To {
        using From = std::decay_t<decltype(held)>;
        if constexpr (converts<To, From>) {
          if (const auto result = converted<To>(held)) return *result;
          if constexpr (!std::is_same_v<From, bool>) asked.fail_range(held, type_name<To>());
        }
        asked.fail_kind(type_name<To>(), *value);
      },
      *value);
}

template <typename To>
std::optional<std::vector<To>> get_array(const Metadata& metadata, std::string_view key) {
  const Value* value = metadata.find(key);
  if (value == nullptr) return std::nullopt;
  const Asked asked{metadata, key};
  const auto expected = [] { return fmt::format("array of {}", type_name<To>()); };
  const Array* array = std::get_if<Array>(value);
  if (array == nullptr) asked.fail_kind(expected(), *value);
  return std::visit(
      [&](const auto& elements) -> std::vector<To> {
        using From = typename std::decay_t<decltype(elements)>::value_type;
        if constexpr (converts<To, From>) {
          std::vector<To> result;
          result.reserve(elements.size());
          for (const From element : elements) {
            const auto number = converted<To>(element);
            if (!number) asked.fail_range(element, type_name<To>());
            result.push_back(*number);
          }
          return result;
        } else {
          asked.fail_kind(expected(), *value);
        }
      },
      *array);
}

}  // namespace

std::string_view name(ValueType type) {
  constexpr std::array<std::string_view, 13> kNames = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                       "bool", "string", "array", "u64", "i64", "f64"};
  const auto number = static_cast<std::size_t>(type);
  return number < kNames.size() ? kNames[number] : "unknown";
}

// Value's alternatives stand in the order of the types' numbers, Array's too, without the array itself.
ValueType type_of(const Value& value) {
  static_assert(
      std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(ValueType::f64), Value>, double>);
  return static_cast<ValueType>(value.index());
}

ValueType element_type_of(const Array& array) {
  const std::size_t index = array.index();
  return static_cast<ValueType>(index < static_cast<std::size_t>(ValueType::array) ? index : index + 1);
}

std::size_t size(const Array& array) {
  return std::visit([](const auto& elements) { return elements.size(); }, array);
}

void Metadata::reserve(std::size_t n_keys) {
  index_.reserve(n_keys);
  entries_.reserve(n_keys);
}

void Metadata::set(std::string key, Value value) {
  const auto key_at = [this](std::size_t place) -> const std::string& { return entries_[place].first; };
  if (const auto place = index_.find(key, key_at)) {
    entries_[*place].second = std::move(value);
    return;
  }
  index_.make_room(key_at);  // so that a failed allocation leaves both as they were
  entries_.emplace_back(std::move(key), std::move(value));
  index_.add(key_at);
}

const Value* Metadata::find(std::string_view key) const {
  const auto place =
      index_.find(key, [this](std::size_t at) -> const std::string& { return entries_[at].first; });
  return place ? &entries_[*place].second : nullptr;
}

std::optional<std::uint32_t> Metadata::get_u32(std::string_view key) const {
  return get_scalar<std::uint32_t>(*this, key);
}

std::optional<std::int64_t> Metadata::get_i64(std::string_view key) const {
  return get_scalar<std::int64_t>(*this, key);
}

std::optional<float> Metadata::get_f32(std::string_view key) const {
  return get_scalar<float>(*this, key);
}

std::optional<bool> Metadata::get_bool(std::string_view key) const {
  return get_scalar<bool>(*this, key);
}

const std::string* Metadata::get_string(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return nullptr;
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) Asked{*this, key}.fail_kind("string", *value);
  return text;
}

const std::vector<std::string>* Metadata::get_strings(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return nullptr;
  const Array* array = std::get_if<Array>(value);
  const auto* strings = array == nullptr ? nullptr : std::get_if<std::vector<std::string>>(array);
  if (strings == nullptr) Asked{*this, key}.fail_kind("array of string", *value);
  return strings;
}

std::optional<std::vector<std::uint32_t>> Metadata::get_u32s(std::string_view key) const {
  return get_array<std::uint32_t>(*this, key);
}

std::optional<std::vector<std::int32_t>> Metadata::get_i32s(std::string_view key) const {
  return get_array<std::int32_t>(*this, key);
}

std::optional<std::vector<float>> Metadata::get_f32s(std::string_view key) const {
  return get_array<float>(*this, key);
}

std::optional<std::vector<std::uint32_t>> Metadata::get_u32_per_layer(std::string_view key,
                                                                      std::size_t n_layers) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!std::holds_alternative<Array>(*value)) return std::vector<std::uint32_t>(n_layers, *get_u32(key));
  auto figures = get_u32s(key);
  if (figures->size() < n_layers) {
    fail(ErrorCode::bad_file, "{}: key '{}': {} elements for {} layers", origin_, printable(key),
         figures->size(), n_layers);
  }
  figures->resize(n_layers);
  return figures;
}

}  // namespace quipu::gguf
