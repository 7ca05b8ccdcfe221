#include "context/model_traits.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/arch/architecture.h"

namespace quipu {

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

bool has_head(const LoadedModel&) {
  return true;
}

}  // namespace quipu
