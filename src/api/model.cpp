#include "quipu/model.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "api/access.h"
#include "api/builtin.h"
#include "api/guard.h"
#include "base/error.h"
#include "model/model.h"

namespace quipu {

struct Model::Impl {
  std::shared_ptr<const LoadedModel> loaded;
};

std::shared_ptr<const LoadedModel> ApiAccess::loaded(const Model& model) {
  return model.impl_->loaded;
}

namespace {

ModelLoadOptions to_inner(const ModelOptions& options) {
  return {options.use_mmap, options.progress, options.without_data};
}

/// What the file recommends, if anything; must be finite and at most `limit` in magnitude.
std::optional<double> recommended(const Metadata& metadata, std::string_view key, double limit) {
  const std::optional<double> value = metadata.number(key);
  if (value && !(std::abs(*value) <= limit)) {
    fail(ErrorCode::bad_file, "key '{}': {} is no sensible value", key, *value);
  }
  return value;
}

}  // namespace

Model::Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Model Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  return guarded(
      [&] { return Model(std::make_shared<const Impl>(Impl{LoadedModel::load(path, to_inner(options))})); });
}

Model Model::built_in(const ModelOptions& options) {
  return guarded([&] {
    return Model(std::make_shared<const Impl>(
        Impl{LoadedModel::load(builtin_model_bytes(), kBuiltinName, to_inner(options))}));
  });
}

std::string Model::name() const {
  return impl_->loaded->metadata().origin();
}

std::string Model::architecture() const {
  return metadata().string("general.architecture").value_or("");
}

Metadata Model::metadata() const {
  return ApiAccess::metadata(std::shared_ptr<const gguf::Metadata>(impl_, &impl_->loaded->metadata()));
}

Tokenizer Model::tokenizer() const {
  return guarded([&] { return ApiAccess::tokenizer(impl_->loaded->vocab()); });
}

std::uint32_t Model::n_vocab() const {
  return impl_->loaded->hparams().n_vocab;
}
std::uint32_t Model::n_ctx_train() const {
  return impl_->loaded->hparams().n_ctx_train;
}
std::uint32_t Model::n_embd() const {
  return impl_->loaded->hparams().n_embd;
}
bool Model::has_encoder() const {
  return impl_->loaded->has_encoder();
}
bool Model::has_decoder() const {
  return impl_->loaded->has_decoder();
}
std::optional<Token> Model::decoder_start_token() const {
  if (!has_encoder() || !has_decoder()) return std::nullopt;
  const auto token = impl_->loaded->hparams().decoder_start_token;
  return token ? std::optional(static_cast<Token>(*token)) : tokenizer().bos();
}
std::uint32_t Model::n_layers() const {
  return static_cast<std::uint32_t>(impl_->loaded->hparams().n_layers());
}
std::uint64_t Model::n_params() const {
  return impl_->loaded->n_params();
}
std::uint64_t Model::bytes() const {
  return impl_->loaded->file_bytes();
}

SamplingOptions Model::recommended_sampling() const {
  return guarded([&] {
    const Metadata keys = metadata();
    SamplingOptions options;
    const auto real = [&](std::string_view name, float& value) {
      constexpr double kLimit = 1e30;
      if (const auto found = recommended(keys, fmt::format("general.sampling.{}", name), kLimit))
        value = static_cast<float>(*found);
    };
    const auto whole = [&](std::string_view name, std::int32_t& value) {
      constexpr double kLimit = 0x7fffffff;
      if (const auto found = recommended(keys, fmt::format("general.sampling.{}", name), kLimit))
        value = static_cast<std::int32_t>(*found);
    };
    real("temp", options.temp);
    whole("top_k", options.top_k);
    real("top_p", options.top_p);
    real("min_p", options.min_p);
    real("xtc_probability", options.xtc_probability);
    real("xtc_threshold", options.xtc_threshold);
    whole("penalty_last_n", options.penalty_last_n);
    real("penalty_repeat", options.penalty_repeat);
    whole("mirostat", options.mirostat);
    real("mirostat_tau", options.mirostat_tau);
    real("mirostat_eta", options.mirostat_eta);
    if (const auto order = keys.string("general.sampling.sequence"))
      options.order = parse_sampler_order(*order);
    return options;
  });
}

}  // namespace quipu
