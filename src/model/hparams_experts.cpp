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

}  // namespace

void read_experts(const KeyReader& keys, Hparams& hparams) {
  const ExpertDescription& description = hparams.architecture->experts;
  const std::uint32_t n_experts = keys.u32("expert_count").value_or(0);
  if (!description.available) {
    if (n_experts > 0) {
      fail(ErrorCode::unsupported, "{}: '{}' models with experts are not supported", keys.metadata().origin(),
           hparams.architecture->name);
    }
    return;
  }
  if (n_experts == 0) return;
  ExpertHparams& experts = hparams.experts;
  experts.n_experts = keys.size("expert_count", kMaxExperts);
  experts.n_used = keys.size("expert_used_count", experts.n_experts);
  const std::uint32_t dense_width = hparams.layers[0].n_ff;
  experts.n_ff = dense_width;
  if (description.own_width) {
    experts.n_ff =
        keys.size("expert_feed_forward_length", kMaxHidden, std::max(1u, dense_width / experts.n_used));
  }
  if (description.shared && keys.u32("expert_shared_count").value_or(0) > 0) {
    experts.n_ff_shared = experts.n_ff * keys.size("expert_shared_count", kMaxHidden / experts.n_ff);
  }
  experts.gating = read_gating(keys, hparams);
  experts.normalize_weights = description.normalize_key
                                  ? keys.flag("expert_weights_norm", description.normalize_weights)
                                  : description.normalize_weights;
  const float scale = keys.number("expert_weights_scale", 1);
  experts.weight_scale = scale == 0 ? 1 : scale;
  if (description.groups) read_expert_groups(keys, experts);
  const std::uint32_t n_dense =
      description.leading_dense ? keys.u32("leading_dense_block_count").value_or(0) : 0;
  for (std::size_t i = n_dense; i < hparams.n_layers(); ++i) hparams.layers[i].has_experts = true;
}

}  // namespace quipu
