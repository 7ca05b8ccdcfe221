#include "quipu/sampler.h"

#include <memory>
#include <utility>

#include "api/guard.h"
#include "api/usual_chain.h"
#include "sampling/chain.h"
#include "sampling/stages.h"

namespace quipu {

struct Sampler::Impl {
  sampling::Chain chain;
  std::optional<std::uint64_t> seed;
};

namespace {

/// What a stage draws with, if it draws.
std::optional<std::uint64_t> seed_of(const SamplerStage& description) {
  return std::visit(
      [](const auto& stage) -> std::optional<std::uint64_t> {
        if constexpr (requires { stage.seed; }) return stage.seed;
        return std::nullopt;
      },
      description);
}

}  // namespace

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Sampler Sampler::chain(const std::vector<SamplerStage>& stages) {
  return guarded([&] {
    auto impl = std::make_unique<Impl>();
    for (const SamplerStage& description : stages) {
      impl->chain.add(sampling::make_stage(description));
      if (!impl->seed) impl->seed = seed_of(description);
    }
    return Sampler(std::move(impl));
  });
}

Sampler::Sampler(const SamplingOptions& options)
    : Sampler(guarded([&] { return chain(usual_chain(options, nullptr)); })) {}
Sampler::Sampler(const SamplingOptions& options, const Tokenizer& tokenizer)
    : Sampler(guarded([&] { return chain(usual_chain(options, &tokenizer)); })) {}

Sampler::Sampler(const Sampler& other)
    : impl_(guarded([&] { return std::make_unique<Impl>(*other.impl_); })) {}
Sampler& Sampler::operator=(const Sampler& other) {
  if (this != &other) *this = Sampler(other);
  return *this;
}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

Token Sampler::sample(std::span<const float> logits) {
  return guarded([&] { return impl_->chain.sample(logits); });
}
void Sampler::accept(Token token) {
  guarded([&] { impl_->chain.accept(token); });
}
void Sampler::reset() {
  guarded([&] { impl_->chain.reset(); });
}
std::optional<std::uint64_t> Sampler::seed() const noexcept {
  return impl_->seed;
}

}  // namespace quipu
