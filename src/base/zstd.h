// Compression with zstd (RFC 8878), where the library was there at build time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quipu {

/// Without it nothing can be compressed or decompressed: Error(unsupported).
bool has_zstd();

/// One frame; the same bytes for the same input and library. Error(out_of_memory).
std::vector<std::byte> zstd_compress(std::span<const std::byte> bytes);
/// Fills `out`, whose size the caller knows; nothing beyond it is written or taken. False if `bytes` are not
/// frames of exactly that much.
bool zstd_decompress(std::span<const std::byte> bytes, std::span<std::byte> out);

}  // namespace quipu
