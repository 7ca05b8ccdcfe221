#include "context/memory_setup.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "memory/batch_memory.h"
#include "memory/kv_memory.h"

namespace quipu {
namespace {

// Windows of the memory's parts, a full part first, longer windows before shorter ones. Layers that remember
// everything can have any window; it is theirs to look away.
std::vector<std::uint32_t> part_windows(std::span<const LayerCacheSpec> layers, bool full) {
  std::vector<std::uint32_t> windows;
  for (const LayerCacheSpec& layer : layers) windows.push_back(full ? 0 : layer.window);
  if (windows.empty()) windows.push_back(0);
  const auto length = [](std::uint32_t window) { return window == 0 ? UINT64_MAX : std::uint64_t{window}; };
  std::sort(windows.begin(), windows.end(),
            [&](std::uint32_t a, std::uint32_t b) { return length(a) > length(b); });
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  return windows;
}

MemorySetup create_kv_memory(const LoadedModel& model, const ResolvedParams& params) {
  const KvMemoryParams memory_params{
      .n_sequences = params.n_seq_max,
      .n_cells = params.n_ctx_seq,
      .unified = params.kv_unified,
      .n_ubatch = params.n_ubatch,
      .can_shift = model.can_shift(),
  };
  const std::vector<LayerCacheSpec> layers = model.cache_specs();
  const std::vector<std::uint32_t> windows = part_windows(layers, params.swa_full);
  std::vector<KvPart> parts;
  parts.reserve(windows.size());
  for (const std::uint32_t window : windows) {
    parts.push_back({.config = kv_part_config(memory_params, window), .storages = {}});
  }
  MemorySetup setup;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerCacheSpec& layer = layers[i];
    const std::uint32_t window = params.swa_full ? 0 : layer.window;
    const auto part =
        static_cast<std::size_t>(std::find(windows.begin(), windows.end(), window) - windows.begin());
    const KvShape shape{params.type_k, params.type_v, layer.n_kv_heads, layer.k_dim, layer.v_dim};
    auto& storages = parts[part].storages;
    storages.push_back(model.device().create_kv(shape, parts[part].config.n_pages));
    parts[part].rotations.push_back(model.key_rotation(i, params.rope));
    setup.caches.push_back({storages.back().get(), part});
  }
  setup.memory = std::make_unique<KvMemory>(memory_params, std::move(parts));
  return setup;
}

}  // namespace

// Cells that live for one batch keep all of their bits.
MemorySetup create_batch_memory(const LoadedModel& model, const ResolvedParams& params,
                                std::span<const LayerCacheSpec> layers) {
  const BatchMemoryParams memory_params{.n_sequences = params.n_seq_max, .n_ubatch = params.n_ubatch};
  MemorySetup setup;
  auto storages = create_f32_storages(model, layers, batch_memory_pages(memory_params));
  for (const auto& storage : storages) setup.caches.push_back({storage.get(), 0});
  setup.memory = std::make_unique<BatchMemory>(memory_params, std::move(storages));
  return setup;
}

std::vector<std::unique_ptr<KvStorage>> create_f32_storages(const LoadedModel& model,
                                                            std::span<const LayerCacheSpec> layers,
                                                            std::size_t n_pages) {
  std::vector<std::unique_ptr<KvStorage>> storages;
  for (const LayerCacheSpec& layer : layers) {
    const KvShape shape{ElementType::f32, ElementType::f32, layer.n_kv_heads, layer.k_dim, layer.v_dim};
    storages.push_back(model.device().create_kv(shape, n_pages));
  }
  return storages;
}

void check_shares_memory(const ResolvedParams& params, const ResolvedParams& of) {
  const auto same = [](std::string_view name, const auto& value, const auto& other) {
    if (value == other) return;
    fail(ErrorCode::invalid_argument, "{} is {}, but {} in the context whose memory is to be shared", name,
         value, other);
  };
  same("n_ctx", params.n_ctx, of.n_ctx);
  same("n_seq_max", params.n_seq_max, of.n_seq_max);
  same("kv_unified", params.kv_unified, of.kv_unified);
  same("swa_full", params.swa_full, of.swa_full);
  same("type_k", info(params.type_k).name, info(of.type_k).name);
  same("type_v", info(params.type_v).name, info(of.type_v).name);
  if (params.rope != of.rope) {
    fail(ErrorCode::invalid_argument,
         "rotation parameters are not those of the context whose memory is to be shared");
  }
  if (params.n_ubatch > of.n_ubatch) {
    fail(ErrorCode::invalid_argument,
         "n_ubatch is {}, but the memory to be shared has been made for at most {} tokens at once",
         params.n_ubatch, of.n_ubatch);
  }
}

MemorySetup create_memory(const LoadedModel& model, const ResolvedParams& params) {
  if (model.has_memory()) return create_kv_memory(model, params);
  return create_batch_memory(model, params, model.cache_specs());
}

}  // namespace quipu
