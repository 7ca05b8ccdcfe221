// Copies out of the window, and moves the window over a file that is not in memory.
#include "gguf/byte_cursor.h"

#include <algorithm>
#include <cstring>

namespace quipu::gguf {
namespace {

constexpr std::uint64_t kWindowBytes = 256 * 1024;

}  // namespace

bool ByteCursor::read(std::span<std::byte> out) {
  if (out.size() > remaining()) return false;
  while (!out.empty()) {
    const std::uint64_t skip = position_ - window_start_;
    if (skip >= window_.size()) {  // only a file's cursor gets here: a window over memory holds everything
      buffer_.resize(std::min(remaining(), kWindowBytes));
      file_->read_at(position_, buffer_);
      window_ = buffer_;
      window_start_ = position_;
      continue;
    }
    const std::size_t step = std::min<std::size_t>(out.size(), window_.size() - skip);
    std::memcpy(out.data(), window_.data() + skip, step);
    position_ += step;
    out = out.subspan(step);
  }
  return true;
}

}  // namespace quipu::gguf
