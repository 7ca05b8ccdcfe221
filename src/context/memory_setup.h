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

/// For models that remember nothing it lives for one batch. Error(out_of_memory); Error(unsupported) names a
/// type that a cache cannot have.
MemorySetup create_memory(const LoadedModel& model, const ResolvedParams& params);
/// A memory of one batch for these layers, and storages like its own.
MemorySetup create_batch_memory(const LoadedModel& model, const ResolvedParams& params,
                                std::span<const LayerCacheSpec> layers);
/// May a context with `params` use the memory that was made for `of`? Error(invalid_argument) names what
/// differs that decides about the memory's size or its numbers.
void check_shares_memory(const ResolvedParams& params, const ResolvedParams& of);
std::vector<std::unique_ptr<KvStorage>> create_f32_storages(const LoadedModel& model,
                                                            std::span<const LayerCacheSpec> layers,
                                                            std::size_t n_pages);

}  // namespace quipu
