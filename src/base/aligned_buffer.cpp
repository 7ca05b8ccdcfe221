#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace quipu {
namespace {

[[noreturn]] void fail_allocation(std::size_t n_bytes) {
  fail(ErrorCode::out_of_memory, "cannot allocate {} bytes ({:.1f} MiB)", n_bytes,
       static_cast<double>(n_bytes) / 0x1p20);
}

std::byte* allocate_small(std::size_t n_bytes) {
  const std::size_t rounded = round_up(n_bytes, AlignedBuffer::kAlignment);  // n_bytes is at most kLarge
  void* memory = std::aligned_alloc(AlignedBuffer::kAlignment, rounded);
  if (memory == nullptr) fail_allocation(n_bytes);
  std::memset(memory, 0, rounded);
  return static_cast<std::byte*>(memory);
}

/// How much of the address space a large buffer takes: whole huge pages.
std::size_t mapped_size(std::size_t n_bytes) {
  return round_up(n_bytes, AlignedBuffer::kHugePage);
}

std::byte* allocate_large(std::size_t n_bytes) {
  const auto size = checked_round_up(n_bytes, AlignedBuffer::kHugePage);
  if (!size) fail_allocation(n_bytes);
  const auto reserved = checked_add(*size, AlignedBuffer::kHugePage);
  if (!reserved) fail_allocation(n_bytes);
  void* mapped = ::mmap(nullptr, *reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail_allocation(n_bytes);
  // Cut off what lies before the first huge-page boundary and behind the last page.
  auto* begin = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t before = round_up<std::uintptr_t>(address, AlignedBuffer::kHugePage) - address;
  const std::size_t behind = AlignedBuffer::kHugePage - before;
  if (before > 0) ::munmap(begin, before);
  if (behind > 0) ::munmap(begin + before + *size, behind);
#ifdef MADV_HUGEPAGE
  ::madvise(begin + before, *size, MADV_HUGEPAGE);  // a wish; without it the buffer works as well
#endif
  return begin + before;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t n_bytes, Backing backing) {
  if (n_bytes > 0 && backing == Backing::memory) {
    data_ = n_bytes > kLarge ? allocate_large(n_bytes) : allocate_small(n_bytes);
  }
  size_ = n_bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  if (size_ > kLarge) {
    ::munmap(data_, mapped_size(size_));
  } else {
    std::free(data_);
  }
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace quipu
