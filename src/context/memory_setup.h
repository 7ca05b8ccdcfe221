// The memory that a context needs for its model: which layers share a part, and how their keys turn.
#pragma once

#include <memory>
#include <vector>

#include "context/params.h"
#include "memory/memory.h"
#include "model/model.h"

namespace quipu {

struct MemorySetup {
  std::unique_ptr<Memory> memory;
  std::vector<GraphOptions::LayerCache> caches;  ///< by layer
};

/// Error(out_of_memory); Error(unsupported) names a type that a cache cannot have.
MemorySetup create_memory(const LoadedModel& model, const ResolvedParams& params);

}  // namespace quipu
