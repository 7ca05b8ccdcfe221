#include "model/model.h"

#include <utility>

#include "base/error.h"
#include "model/arch/architecture.h"
#include "model/arch/forward.h"
#include "model/rope_frequencies.h"

namespace quipu {
namespace {

std::vector<LayerCacheSpec> specs_of(const std::vector<LayerHparams>& layers) {
  std::vector<LayerCacheSpec> specs;
  specs.reserve(layers.size());
  for (const LayerHparams& layer : layers)
    specs.push_back({layer.n_kv_heads, layer.k_dim, layer.v_dim, layer.window});
  return specs;
}

}  // namespace

LoadedModel::LoadedModel(gguf::Metadata metadata, Hparams hparams, Vocab vocab, Backing backing)
    : metadata_(std::move(metadata)),
      hparams_(std::move(hparams)),
      vocab_(std::move(vocab)),
      has_data_(backing == Backing::memory),
      device_(create_cpu_device(backing)) {}

bool LoadedModel::has_encoder() const {
  const Architecture& arch = *hparams_.architecture;
  return arch.structure == Structure::encoder_decoder || arch.t5_names;
}

bool LoadedModel::has_decoder() const {
  const Architecture& arch = *hparams_.architecture;
  return arch.structure != Structure::encoder || !arch.t5_names;
}

bool LoadedModel::has_memory() const {
  return hparams_.architecture->structure != Structure::encoder;
}

bool LoadedModel::has_logits() const {
  return hparams_.architecture->head.logits;
}

bool LoadedModel::has_rank_head() const {
  const bool cls_scores = hparams_.architecture->head.rank.cls_scores;
  return (cls_scores ? weights_.cls : weights_.cls_output).matrix != nullptr;
}

std::uint32_t LoadedModel::n_embd_out() const {
  const bool narrowed = weights_.dense_2.matrix != nullptr && weights_.dense_3.matrix == nullptr;
  return narrowed ? hparams_.dense_2_width : hparams_.n_embd;
}

std::optional<std::uint32_t> LoadedModel::position_limit() const {
  if (weights_.position_embd == nullptr) return std::nullopt;
  return hparams_.n_ctx_train;
}

std::vector<LayerCacheSpec> LoadedModel::cache_specs() const {
  const std::vector<LayerCacheSpec> of_layers = specs_of(hparams_.layers);
  std::vector<LayerCacheSpec> specs;
  for (const std::size_t layer : hparams_.attending_layers()) specs.push_back(of_layers[layer]);
  return specs;
}

std::vector<LayerCacheSpec> LoadedModel::encoder_cache_specs() const {
  return specs_of(hparams_.encoder_layers);
}

std::vector<LayerCacheSpec> LoadedModel::cross_cache_specs() const {
  if (hparams_.architecture->structure != Structure::encoder_decoder) return {};
  std::vector<LayerCacheSpec> specs = specs_of(hparams_.layers);
  for (LayerCacheSpec& spec : specs) spec.window = 0;
  return specs;
}

bool LoadedModel::can_shift() const {
  return has_memory() && weights_.position_embd == nullptr;
}

std::optional<KeyRotation> LoadedModel::key_rotation(std::size_t cache,
                                                     const RopeOverrides& overrides) const {
  const std::vector<std::size_t> attending = hparams_.attending_layers();
  QUIPU_CHECK(cache < attending.size());
  const std::size_t layer = attending[cache];
  const AttentionDescription& attention = hparams_.architecture->attention;
  if (attention.positions != PositionKind::rotation || !hparams_.layers[layer].rotates) return std::nullopt;
  RopeAnglesParams angles = layer_rope(hparams_, weights_, hparams_.layers[layer], overrides);
  std::size_t first = 0;
  if (attention.kind == AttentionKind::latent) first = hparams_.k_dim - 2 * angles.frequencies.size();
  return KeyRotation{
      .frequencies = std::move(angles.frequencies), .style = hparams_.rope.style, .first = first};
}

ModelGraph LoadedModel::build_graph(const GraphOptions& options) const {
  return build_forward(hparams_, weights_, options);
}

ModelGraph LoadedModel::build_encoder_graph(const GraphOptions& options) const {
  QUIPU_CHECK(hparams_.architecture->structure == Structure::encoder_decoder);
  return build_encoder(hparams_, weights_, options);
}

RankGraph LoadedModel::build_rank_head() const {
  QUIPU_CHECK(has_rank_head());
  return {quipu::build_rank_head(hparams_, weights_), hparams_.architecture->head.rank.pooling};
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
