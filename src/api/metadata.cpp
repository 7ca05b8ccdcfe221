#include "quipu/metadata.h"

#include <concepts>
#include <type_traits>
#include <utility>

#include "api/guard.h"
#include "base/error.h"
#include "gguf/metadata.h"

namespace quipu {

namespace {

/// The type that the public interface gives a value of type T.
template <typename T>
using Widened = std::conditional_t<std::signed_integral<T>, std::int64_t,
                                   std::conditional_t<std::unsigned_integral<T>, std::uint64_t, T>>;

MetadataArray to_public(const gguf::Array& array) {
  return std::visit(
      [](const auto& elements) -> MetadataArray {
        using T = typename std::decay_t<decltype(elements)>::value_type;
        if constexpr (std::is_same_v<T, gguf::Bool>) {
          std::vector<bool> result;
          result.reserve(elements.size());
          for (const gguf::Bool& element : elements) result.push_back(element.value);
          return result;
        } else {
          return std::vector<Widened<T>>(elements.begin(), elements.end());
        }
      },
      array);
}

MetadataValue to_public(const gguf::Value& value) {
  return std::visit(
      [](const auto& content) -> MetadataValue {
        using T = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<T, gguf::Array>) {
          return to_public(content);
        } else if constexpr (std::is_same_v<T, bool>) {
          return content;
        } else {
          return static_cast<Widened<T>>(content);
        }
      },
      value);
}

const std::pair<std::string, gguf::Value>& entry(const gguf::Metadata& metadata, std::size_t i) {
  if (i >= metadata.entries().size()) {
    fail(ErrorCode::invalid_argument, "{}: no key number {} of {}", metadata.origin(), i,
         metadata.entries().size());
  }
  return metadata.entries()[i];
}

}  // namespace

std::size_t Metadata::size() const noexcept {
  return entries_->entries().size();
}

std::string_view Metadata::key(std::size_t i) const {
  return entry(*entries_, i).first;
}

std::string Metadata::type(std::size_t i) const {
  return guarded([&] {
    const gguf::Value& value = entry(*entries_, i).second;
    const auto* array = std::get_if<gguf::Array>(&value);
    if (array == nullptr) return std::string(gguf::name(gguf::type_of(value)));
    return std::string(gguf::name(gguf::element_type_of(*array))) + "[]";
  });
}

MetadataValue Metadata::value(std::size_t i) const {
  return guarded([&] { return to_public(entry(*entries_, i).second); });
}

std::string Metadata::display(std::size_t i, std::size_t max_chars) const {
  return guarded([&] { return gguf::to_display(entry(*entries_, i).second, max_chars); });
}

std::optional<std::size_t> Metadata::find(std::string_view key) const {
  const auto& entries = entries_->entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first == key) return i;
  }
  return std::nullopt;
}

std::optional<std::string> Metadata::string(std::string_view key) const {
  return guarded([&]() -> std::optional<std::string> {
    const std::string* value = entries_->get_string(key);
    return value == nullptr ? std::nullopt : std::optional(*value);
  });
}

std::optional<double> Metadata::number(std::string_view key) const {
  return guarded([&]() -> std::optional<double> {
    const gguf::Value* value = entries_->find(key);
    if (value == nullptr) return std::nullopt;
    return std::visit(
        [&](const auto& content) -> std::optional<double> {
          using T = std::decay_t<decltype(content)>;
          if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
            return static_cast<double>(content);
          } else {
            fail(ErrorCode::bad_file, "{}: key '{}': expected a number, found {}", entries_->origin(), key,
                 gguf::name(gguf::type_of(*value)));
          }
        },
        *value);
  });
}

}  // namespace quipu
