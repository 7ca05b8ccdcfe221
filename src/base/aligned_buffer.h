// Owned, zero-filled memory on cache-line boundaries: what tensors, pages and scratch live in. Large buffers
// come from the system page by page, so that untouched parts cost nothing, and ask for huge pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace quipu {

/// What stands behind a buffer.
enum class Backing : std::uint8_t {
  memory,
  none,  ///< it has a size and no bytes: for asking what something would take
};

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  /// Buffers above this size start at a multiple of kHugePage.
  static constexpr std::size_t kLarge = std::size_t{4} << 20;

  AlignedBuffer() noexcept = default;
  /// `n_bytes` zero bytes. Throws Error(out_of_memory), which names the size.
  explicit AlignedBuffer(std::size_t n_bytes, Backing backing = Backing::memory);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::span<std::byte> bytes() noexcept { return {data_, n_bytes()}; }
  std::span<const std::byte> bytes() const noexcept { return {data_, n_bytes()}; }

  /// The buffer as whole elements of T; bytes left over at the end are not part of it.
  template <typename T>
  std::span<T> as() noexcept {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return {reinterpret_cast<T*>(data_), n_bytes() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const noexcept {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return {reinterpret_cast<const T*>(data_), n_bytes() / sizeof(T)};
  }

 private:
  std::size_t n_bytes() const noexcept { return data_ == nullptr ? 0 : size_; }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace quipu
