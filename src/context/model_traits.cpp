#include "context/model_traits.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/arch/architecture.h"
#include "model/rope_frequencies.h"
#include "quant/quant.h"

namespace quipu {
namespace {

std::vector<float> rope_factors(const LoadedModel& model) {
  const Weight* factors = model.find_weight("rope_freqs.weight");
  if (factors == nullptr) return {};
  std::vector<float> values(factors->shape.dim(0));
  std::vector<std::byte> bytes(row_bytes(factors->type, values.size()));
  factors->storage->get_rows(0, 0, bytes);
  decode_row(factors->type, bytes, values);
  return values;
}

}  // namespace

Pooling trained_pooling(const LoadedModel& model) {
  const std::string key = fmt::format("{}.pooling_type", model.hparams().architecture->name);
  const auto type = model.metadata().get_u32(key);
  if (!type) return Pooling::none;
  if (*type > static_cast<std::uint32_t>(Pooling::rank)) {
    fail(ErrorCode::bad_file, "{}: key '{}' is {}, which is no pooling", model.metadata().origin(), key,
         *type);
  }
  return static_cast<Pooling>(*type);
}

std::size_t n_embd_out(const LoadedModel& model) {
  return model.hparams().n_embd;
}

std::vector<std::optional<KeyRotation>> key_rotations(const LoadedModel& model,
                                                      const RopeOverrides& overrides) {
  const Hparams& hparams = model.hparams();
  const std::vector<float> factors = rope_factors(model);
  std::vector<std::optional<KeyRotation>> rotations;
  for (const LayerHparams& layer : hparams.layers) {
    const RopeAnglesParams angles = layer.local_rope ? rope_frequencies(hparams.local_rope, {}, {})
                                                     : rope_frequencies(hparams.rope, overrides, factors);
    rotations.emplace_back(KeyRotation{angles.frequencies, hparams.architecture->rope, 0});
  }
  return rotations;
}

bool has_head(const LoadedModel&) {
  return true;
}

}  // namespace quipu
