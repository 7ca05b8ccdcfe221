// Where intermediate tensors go in one block of memory: tensors whose lives do not overlap share bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quipu {

/// A tensor's size and life, in phases, both ends included.
struct ArenaRequest {
  std::size_t bytes;
  std::size_t first_phase;
  std::size_t last_phase;
};

struct ArenaLayout {
  std::vector<std::size_t> offsets;  ///< by request, multiples of 64
  std::size_t bytes = 0;             ///< of the whole arena
};

/// Largest first, each at the lowest offset that is free during its whole life.
ArenaLayout plan_arena(std::span<const ArenaRequest> requests);

}  // namespace quipu
