// What a context has to know of a model beyond its hyper-parameters.
#pragma once

#include <optional>
#include <vector>

#include "context/pooling.h"
#include "model/model.h"

namespace quipu {

/// As the file says (`ARCH.pooling_type`), or none.
Pooling trained_pooling(const LoadedModel& model);
/// Width of the embeddings that come out.
std::size_t n_embd_out(const LoadedModel& model);
/// By layer: how stored keys turn when their positions change; nothing for those that do not.
std::vector<std::optional<KeyRotation>> key_rotations(const LoadedModel& model,
                                                      const RopeOverrides& overrides);
/// Are there logits?
bool has_head(const LoadedModel& model);

}  // namespace quipu
