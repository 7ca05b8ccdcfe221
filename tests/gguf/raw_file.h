// GGUF bytes put together field by field, so that a test can get any of them wrong.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gguf/reader.h"
#include "quipu/error.h"

namespace quipu::gguf::test {

inline constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
inline constexpr std::uint32_t kF32 = 0;

class RawFile {
 public:
  RawFile() = default;
  /// Magic and header.
  RawFile(std::uint64_t n_tensors, std::uint64_t n_keys, std::uint32_t version = 3) {
    raw("GGUF").number(version).number(n_tensors).number(n_keys);
  }

  template <typename T>
    requires std::is_arithmetic_v<T>
  RawFile& number(T value) {
    const std::size_t end = bytes_.size();
    bytes_.resize(end + sizeof(T));
    std::memcpy(bytes_.data() + end, &value, sizeof(T));
    return *this;
  }
  RawFile& raw(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  RawFile& text(std::string_view text) { return number(std::uint64_t{text.size()}).raw(text); }
  /// A key without its value.
  RawFile& key(std::string_view name, ValueType type) {
    return text(name).number(static_cast<std::uint32_t>(type));
  }
  RawFile& array_key(std::string_view name, std::uint32_t type, std::uint64_t count) {
    return key(name, ValueType::array).number(type).number(count);
  }
  RawFile& tensor(std::string_view name, std::vector<std::uint64_t> dims, std::uint32_t type = kF32,
                  std::uint64_t offset = 0) {
    text(name).number(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) number(dim);
    return number(type).number(offset);
  }
  /// Zeros up to the next multiple, then `n_bytes` of data: 1, 2, 3 ...
  RawFile& data(std::size_t n_bytes, std::size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    for (std::size_t i = 0; i < n_bytes; ++i) bytes_.push_back(static_cast<std::byte>(i + 1));
    return *this;
  }

  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// The error that opening gives; nothing if it opens.
inline std::optional<Error> error_of(std::span<const std::byte> bytes) {
  try {
    (void)Reader::from_memory(bytes, "f.gguf");
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

/// Its message; "opens" if it opens.
inline std::string message_of(RawFile& file) {
  const auto error = error_of(file.bytes());
  return error ? error->message() : "opens";
}

inline std::span<const std::byte> as_bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace quipu::gguf::test
