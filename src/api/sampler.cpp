#include "quipu/sampler.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "api/guard.h"
#include "sampling/chain.h"
#include "sampling/random.h"
#include "sampling/stages.h"

namespace quipu {

struct Sampler::Impl {
  sampling::Chain chain;
  std::optional<std::uint64_t> seed;
};

namespace {

std::unique_ptr<sampling::Stage> make_stage(const SamplerStage& description) {
  return std::visit(
      [](const auto& stage) -> std::unique_ptr<sampling::Stage> {
        using T = std::decay_t<decltype(stage)>;
        if constexpr (std::is_same_v<T, stage::Greedy>) return std::make_unique<sampling::Greedy>();
        if constexpr (std::is_same_v<T, stage::Temperature>)
          return std::make_unique<sampling::Temperature>(stage.temp);
        if constexpr (std::is_same_v<T, stage::TopK>) return std::make_unique<sampling::TopK>(stage.k);
        if constexpr (std::is_same_v<T, stage::TopP>)
          return std::make_unique<sampling::TopP>(stage.p, stage.min_keep);
        if constexpr (std::is_same_v<T, stage::MinP>)
          return std::make_unique<sampling::MinP>(stage.p, stage.min_keep);
        if constexpr (std::is_same_v<T, stage::Draw>) return std::make_unique<sampling::Draw>(stage.seed);
      },
      description);
}

std::vector<SamplerStage> usual_stages(const SamplingOptions& options) {
  const std::uint64_t seed = options.seed ? *options.seed : sampling::random_seed();
  return {stage::TopK{options.top_k}, stage::TopP{options.top_p}, stage::MinP{options.min_p},
          stage::Temperature{options.temp}, stage::Draw{seed}};
}

}  // namespace

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Sampler Sampler::chain(const std::vector<SamplerStage>& stages) {
  return guarded([&] {
    auto impl = std::make_unique<Impl>();
    for (const SamplerStage& description : stages) {
      impl->chain.add(make_stage(description));
      const auto* draw = std::get_if<stage::Draw>(&description);
      if (draw != nullptr && !impl->seed) impl->seed = draw->seed;
    }
    return Sampler(std::move(impl));
  });
}

Sampler::Sampler(const SamplingOptions& options)
    : Sampler(guarded([&] { return chain(usual_stages(options)); })) {}

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
