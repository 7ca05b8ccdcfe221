#include "model/model.h"

#include <utility>

#include "model/arch/decoder.h"

namespace quipu {

LoadedModel::LoadedModel(gguf::Metadata metadata, Hparams hparams, Vocab vocab)
    : metadata_(std::move(metadata)),
      hparams_(std::move(hparams)),
      vocab_(std::move(vocab)),
      device_(create_cpu_device()) {}

std::vector<LayerCacheSpec> LoadedModel::cache_specs() const {
  std::vector<LayerCacheSpec> specs;
  specs.reserve(hparams_.n_layers());
  for (const LayerHparams& layer : hparams_.layers) {
    specs.push_back({layer.n_kv_heads, hparams_.k_dim, hparams_.v_dim, layer.window});
  }
  return specs;
}

ModelGraph LoadedModel::build_graph(const GraphOptions& options) const {
  return build_decoder(hparams_, weights_, rope_factors_, options);
}

std::uint64_t LoadedModel::device_bytes() const {
  std::uint64_t total = 0;
  for (const auto& storage : storages_) total += storage->bytes();
  return total;
}

const Weight* LoadedModel::find_weight(std::string_view name) const {
  for (const auto& weight : weight_list_) {
    if (weight->name == name) return weight.get();
  }
  return nullptr;
}

}  // namespace quipu
