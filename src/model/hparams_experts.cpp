// Hyper-parameters of experts.
#include "model/hparams_reader.h"

#include <algorithm>

#include "model/arch/architecture.h"

namespace quipu {
namespace {

/// The file's numbers of gating kinds.
ExpertGating read_gating(const KeyReader& keys, const Hparams& hparams) {
  const ExpertDescription& description = hparams.architecture->experts;
  if (!description.gating_key) return description.gating;
  const std::uint32_t kind = keys.u32("expert_gating_func").value_or(0);
  switch (kind) {
    case 0: break;
    case 1: return ExpertGating::softmax;
    case 2: return ExpertGating::sigmoid;
    case 3: return ExpertGating::chosen_softmax;
    default: keys.unsupported("expert_gating_func", kind);
  }
  // GLM 4.7 Flash was published as deepseek2 before the key was.
  const bool is_glm = (hparams.n_layers() == 47 || hparams.n_layers() == 48) && hparams.n_vocab == 154880;
  return is_glm ? ExpertGating::sigmoid : description.gating;
}

void read_expert_groups(const KeyReader& keys, ExpertHparams& experts) {
  const std::uint32_t n_groups = keys.u32("expert_group_count").value_or(0);
  if (n_groups <= 1) return;
  experts.n_groups = keys.size("expert_group_count", kMaxExpertGroups);
  experts.n_groups_used = keys.size("expert_group_used_count", n_groups);
  if (experts.n_experts % n_groups != 0 ||
      experts.n_used > experts.n_experts / n_groups * experts.n_groups_used) {
    fail(ErrorCode::bad_file, "{}: {} of {} experts cannot be chosen from {} of {} groups ('{}')",
         keys.metadata().origin(), experts.n_used, experts.n_experts, experts.n_groups_used, n_groups,
         keys.key("expert_group_count"));
  }
}

/// 0: there are no shared experts.
std::uint32_t read_shared_width(const KeyReader& keys, const Hparams& hparams) {
  const std::uint32_t n_ff = hparams.experts.n_ff;
  const SharedExperts kind = hparams.architecture->experts.shared;
  const auto count = [&] { return keys.u32("expert_shared_count").value_or(0); };
  const auto size = [&](std::uint32_t fallback) {
    const std::uint32_t width = keys.u32("expert_shared_feed_forward_length").value_or(0);
    return width == 0 ? fallback : keys.size("expert_shared_feed_forward_length", kMaxHidden);
  };
  const auto times = [&](std::uint32_t width) {
    return count() == 0 ? 0 : width * keys.size("expert_shared_count", kMaxHidden / width);
  };
  switch (kind) {
    case SharedExperts::none: return 0;
    case SharedExperts::counted: return times(n_ff);
    case SharedExperts::one: return n_ff;
    case SharedExperts::dense: return hparams.layers[0].n_ff;
    case SharedExperts::sized: return size(0);
    case SharedExperts::sized_or_dense: return size(hparams.layers[0].n_ff);
    case SharedExperts::sized_or_counted: return count() == 0 ? 0 : size(times(n_ff));
    case SharedExperts::counted_sizes: return times(size(n_ff));
  }
  return 0;
}

void read_chunk_experts(const KeyReader& keys, Hparams& hparams) {
  ExpertHparams& experts = hparams.experts;
  experts.n_chunk_ff = keys.size("expert_chunk_feed_forward_length", kMaxHidden, hparams.k_dim);
  experts.chunk_scale = keys.positive("expert_group_scale");
  experts.chunk_size = keys.size("experts_per_group", experts.n_experts);
  if (experts.n_experts % experts.chunk_size != 0) {
    fail(ErrorCode::bad_file, "{}: key '{}' is {}, which does not divide {} experts",
         keys.metadata().origin(), keys.key("experts_per_group"), experts.chunk_size, experts.n_experts);
  }
}

/// Which layers have experts, or may.
void choose_expert_layers(const KeyReader& keys, Hparams& hparams) {
  const ExpertDescription& description = hparams.architecture->experts;
  const std::uint32_t n_dense =
      description.leading_dense ? keys.u32("leading_dense_block_count").value_or(0) : 0;
  const std::uint32_t step = description.step_key ? keys.size("interleave_moe_layer_step", kMaxLayers) : 1;
  const std::uint32_t every = description.every_key ? keys.u32("moe_every_n_layers").value_or(0) : 0;
  for (std::size_t i = n_dense; i < hparams.n_layers(); ++i) {
    hparams.layers[i].has_experts =
        description.every_key ? every != 0 && i % every == 1 : (i + 1) % step == 0;
    hparams.layers[i].is_idle = description.idle_experts && !hparams.layers[i].has_experts;
  }
}

}  // namespace

void read_experts(const KeyReader& keys, Hparams& hparams) {
  const ExpertDescription& description = hparams.architecture->experts;
  if (!description.available || keys.u32("expert_count").value_or(0) == 0) return;
  ExpertHparams& experts = hparams.experts;
  experts.n_experts = keys.size("expert_count", kMaxExperts);
  experts.n_used = keys.size("expert_used_count", experts.n_experts);
  const std::uint32_t dense_width = hparams.layers[0].n_ff;
  experts.n_ff = dense_width;
  if (description.beside_dense) {
    for (LayerHparams& layer : hparams.layers) layer.n_ff = hparams.n_embd;
  }
  if (description.own_width) {
    experts.n_ff =
        keys.size("expert_feed_forward_length", kMaxHidden, std::max(1u, dense_width / experts.n_used));
  }
  experts.n_ff_shared = read_shared_width(keys, hparams);
  experts.gating = read_gating(keys, hparams);
  experts.normalize_weights = description.normalize_key
                                  ? keys.flag("expert_weights_norm", description.normalize_weights)
                                  : description.normalize_weights;
  const float scale = keys.number("expert_weights_scale", 1);
  experts.weight_scale = scale == 0 ? 1 : scale;
  read_expert_groups(keys, experts);
  if (description.chunk_experts) read_chunk_experts(keys, hparams);
  choose_expert_layers(keys, hparams);
}

}  // namespace quipu
