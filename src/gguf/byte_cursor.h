// A position in a file that moves forward and never past the end. Nothing is assumed about the bytes: whoever
// reads a length checks it against remaining() before allocating for it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/file.h"

namespace quipu::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they stand in the file");

class ByteCursor {
 public:
  /// Over bytes in memory.
  explicit ByteCursor(std::span<const std::byte> bytes) : size_(bytes.size()), window_(bytes) {}
  /// Over a file, which must outlive the cursor; reads it in pieces of up to 256 KiB.
  explicit ByteCursor(const File& file) : size_(file.size()), file_(&file) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t remaining() const { return size_ - position_; }

  /// Fills `out` and moves on; returns false and stays if fewer bytes are left.
  [[nodiscard]] bool read(std::span<std::byte> out);

  /// Nothing if fewer bytes are left.
  template <typename T>
    requires std::is_arithmetic_v<T>
  std::optional<T> read_number() {
    T number{};
    if (!read(std::as_writable_bytes(std::span(&number, 1)))) return std::nullopt;
    return number;
  }

 private:
  std::uint64_t size_;
  std::uint64_t position_ = 0;
  std::span<const std::byte> window_;  // of the file, from window_start_; holds all of it when in memory
  std::uint64_t window_start_ = 0;
  const File* file_ = nullptr;
  std::vector<std::byte> buffer_;
};

}  // namespace quipu::gguf
