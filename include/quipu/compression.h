// How saved states may be packed.
#pragma once

#include <cstdint>

namespace quipu {

/// Of saved states. zstd is there if the library was when this was built; else it is Error(unsupported), also
/// for states that are to be loaded.
enum class Compression : std::uint8_t { none, zstd };

}  // namespace quipu
