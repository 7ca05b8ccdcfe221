#include "quipu/model.h"

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
  const auto token = impl_->loaded->hparams().decoder_start_token;
  return token ? std::optional(static_cast<Token>(*token)) : std::nullopt;
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
    constexpr double kFloatLimit = 1e30;
    const Metadata keys = metadata();
    SamplingOptions options;
    if (const auto temp = recommended(keys, "general.sampling.temp", kFloatLimit))
      options.temp = static_cast<float>(*temp);
    if (const auto k = recommended(keys, "general.sampling.top_k", 0x7fffffff))
      options.top_k = static_cast<std::int32_t>(*k);
    if (const auto p = recommended(keys, "general.sampling.top_p", kFloatLimit))
      options.top_p = static_cast<float>(*p);
    if (const auto p = recommended(keys, "general.sampling.min_p", kFloatLimit))
      options.min_p = static_cast<float>(*p);
    return options;
  });
}

}  // namespace quipu
