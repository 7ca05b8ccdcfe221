// Which positions a query of attention looks at: one rule for all kernels that compare positions in vectors.
// The scalar reference has its own, cell by cell.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/attention.h"

namespace quipu::cpu {

constexpr std::int32_t kNoCell = -1;  ///< the position of an empty cell

/// Where one query looks, as comparisons of positions.
struct QueryRange {
  std::int32_t after;     ///< only cells with a larger position
  std::int32_t last;      ///< and none with a larger one than this
  std::int32_t position;  ///< causal: cells before it are visible, those at it up to `place`
  std::int32_t place;
};

// Static, so that no instruction set's code is taken for another's.
static inline QueryRange range_of(const AttentionTask& task, std::size_t query) {
  const AttentionQuery& at = task.queries.data()[query];
  std::int64_t after = kNoCell;  // empty cells have this position
  std::int64_t last = task.causal ? at.position : INT32_MAX;
  if (task.window > 0) {
    const std::int64_t reach = task.chunked_window     ? at.position % task.window + 1
                               : task.symmetric_window ? task.window / 2 + 1
                                                       : task.window;
    const std::int64_t bound = at.position - reach;
    if (bound > after) after = bound;
    const std::int64_t chunk_end = at.position - reach + task.window;
    if (task.chunked_window) {
      if (chunk_end < last) last = chunk_end;
    } else if (task.symmetric_window && at.position + reach - 1 < last) {
      last = at.position + reach - 1;
    }
  }
  return {static_cast<std::int32_t>(after), static_cast<std::int32_t>(last), at.position, at.place};
}

}  // namespace quipu::cpu
