#include "base/zstd.h"

#include "base/error.h"

#ifdef QUIPU_ZSTD
#include <zstd.h>
#endif

namespace quipu {

#ifdef QUIPU_ZSTD

bool has_zstd() {
  return true;
}

std::vector<std::byte> zstd_compress(std::span<const std::byte> bytes) {
  std::vector<std::byte> out(ZSTD_compressBound(bytes.size()));
  const std::size_t n =
      ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), ZSTD_CLEVEL_DEFAULT);
  // With room for the worst case that is all that can go wrong.
  if (ZSTD_isError(n) != 0) fail(ErrorCode::out_of_memory, "zstd: {}", ZSTD_getErrorName(n));
  out.resize(n);
  return out;
}

bool zstd_decompress(std::span<const std::byte> bytes, std::span<std::byte> out) {
  return ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size()) == out.size();
}

#else

bool has_zstd() {
  return false;
}

std::vector<std::byte> zstd_compress(std::span<const std::byte>) {
  fail(ErrorCode::unsupported, "zstd: this build cannot compress");
}

bool zstd_decompress(std::span<const std::byte>, std::span<std::byte>) {
  fail(ErrorCode::unsupported, "zstd: this build cannot decompress");
}

#endif

}  // namespace quipu
