#include "context/state/context_state.h"

#include <optional>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "quant/element_type.h"

namespace quipu {
namespace {

// Some rows of some matrices tell models of one shape apart; reading all would take as long as loading.
constexpr const char* kSampledMatrices[] = {"attn_q.weight",   "attn_k.weight", "attn_v.weight",
                                            "attn_qkv.weight", "ffn_up.weight", "attn_kv_b.weight",
                                            "ffn_down.weight"};

void add_rows(const LoadedModel& model, const std::string& name, XXH3_state_t& hash) {
  const Weight* weight = model.find_weight(name);
  if (weight == nullptr || weight->role != WeightRole::matrix || weight->shape.rank() != 2) return;
  XXH3_64bits_update(&hash, name.data(), name.size());
  std::vector<std::byte> row(row_bytes(weight->type, weight->shape.last()));
  const std::size_t n_rows = weight->shape.dim(0);
  for (const std::size_t i : {std::size_t{0}, n_rows / 2, n_rows - 1}) {
    weight->storage->get_rows(0, i, row);
    XXH3_64bits_update(&hash, row.data(), row.size());
  }
}

std::string model_fact(const LoadedModel& model) {
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  add_rows(model, "token_embd.weight", hash);
  for (std::size_t layer = 0; layer < model.hparams().n_layers(); ++layer) {
    for (const char* name : kSampledMatrices) add_rows(model, fmt::format("blk.{}.{}", layer, name), hash);
  }
  return fmt::format("{} parameters, {} bytes, {:016x}", model.n_params(), model.file_bytes(),
                     XXH3_64bits_digest(&hash));
}

template <typename T>
std::string to_text(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "model's";
}

}  // namespace

StateAccess state_access(InferenceContext& context) {
  const LoadedModel& model = context.model();
  if (!model.has_data()) fail(ErrorCode::unsupported, "state: the model was loaded without data");
  const RopeOverrides& rope = context.params().rope;
  const std::string* architecture = model.metadata().get_string("general.architecture");
  StateAccess access{.memory = &context.memory(), .facts = {}, .text = context.encoded_text()};
  access.facts.emplace_back("architecture", architecture == nullptr ? "" : *architecture);
  access.facts.emplace_back("model", model_fact(model));
  // What of rotation is not in the frequencies: the magnitude of keys.
  access.facts.emplace_back(
      "rotation",
      fmt::format("scaling {}, scale {}, extrapolation {}, attention factor {}, beta fast {}, beta "
                  "slow {}, context {}",
                  rope.scaling ? fmt::format("{}", static_cast<int>(*rope.scaling)) : "model's",
                  to_text(rope.frequency_scale), to_text(rope.yarn_extrapolation),
                  to_text(rope.yarn_attention_factor), to_text(rope.yarn_beta_fast),
                  to_text(rope.yarn_beta_slow), to_text(rope.original_context)));
  return access;
}

}  // namespace quipu
