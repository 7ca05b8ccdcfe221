#include "backend/arena_planner.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace quipu {
namespace {

constexpr std::size_t kAlignment = 64;

struct Placed {
  std::size_t offset, end;
  std::size_t first_phase, last_phase;
};

/// Lowest offset where `bytes` fit between the blocks (ascending by offset) that live at the same time.
std::size_t lowest_gap(const std::vector<Placed>& placed, const ArenaRequest& request, std::size_t bytes) {
  std::size_t offset = 0;
  for (const Placed& block : placed) {
    const bool together = block.first_phase <= request.last_phase && request.first_phase <= block.last_phase;
    if (!together) continue;
    if (offset + bytes <= block.offset) break;
    offset = std::max(offset, block.end);
  }
  return offset;
}

}  // namespace

ArenaLayout plan_arena(std::span<const ArenaRequest> requests) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return requests[a].bytes > requests[b].bytes; });

  ArenaLayout layout;
  layout.offsets.resize(requests.size());
  std::vector<Placed> placed;
  for (const std::size_t i : order) {
    const ArenaRequest& request = requests[i];
    const std::size_t bytes = round_up(request.bytes, kAlignment);
    const std::size_t offset = lowest_gap(placed, request, bytes);
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    const Placed block{offset, offset + bytes, request.first_phase, request.last_phase};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                                   [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
                  block);
  }
  return layout;
}

}  // namespace quipu
