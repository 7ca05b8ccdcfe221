#include "api/usual_chain.h"

#include <utility>

#include "api/guard.h"
#include "base/error.h"
#include "sampling/random.h"

namespace quipu {
namespace {

stage::Dry dry_stage(const SamplingOptions& options, const Tokenizer* tokenizer) {
  stage::Dry dry{options.dry_multiplier, options.dry_base, options.dry_allowed_length, options.dry_last_n};
  if (options.dry_multiplier == 0 || options.dry_breakers.empty()) return dry;
  if (tokenizer == nullptr)
    fail(ErrorCode::invalid_argument, "sampling: dry_breakers are texts, and there is no tokenizer for them");
  dry.breakers = dry_breakers(*tokenizer, options.dry_breakers);
  return dry;
}

SamplerStage named_stage(std::string_view name, const SamplingOptions& o, const Tokenizer* tokenizer,
                         std::uint64_t seed) {
  if (name == "penalties")
    return stage::Penalties{o.penalty_last_n, o.penalty_repeat, o.penalty_freq, o.penalty_present};
  if (name == "dry") return dry_stage(o, tokenizer);
  if (name == "top_n_sigma") return stage::TopNSigma{o.top_n_sigma};
  if (name == "top_k") return stage::TopK{o.top_k};
  if (name == "typ_p") return stage::Typical{o.typical_p, o.min_keep};
  if (name == "top_p") return stage::TopP{o.top_p, o.min_keep};
  if (name == "min_p") return stage::MinP{o.min_p, o.min_keep};
  if (name == "xtc") return stage::Xtc{o.xtc_probability, o.xtc_threshold, o.min_keep, seed};
  if (name == "temp") return stage::DynamicTemperature{o.temp, o.dynatemp_range, o.dynatemp_exponent};
  fail(ErrorCode::invalid_argument,
       "sampling: there is no stage \"{}\"; there are penalties, dry, top_n_sigma, top_k, typ_p, top_p, "
       "min_p, "
       "xtc and temp",
       name);
}

SamplerStage selecting_stage(const SamplingOptions& options, std::uint64_t seed) {
  if (options.temp <= 0) return stage::Greedy{};
  if (options.mirostat == 1) return stage::Mirostat{options.mirostat_tau, options.mirostat_eta, 100, 0, seed};
  if (options.mirostat == 2) return stage::Mirostat2{options.mirostat_tau, options.mirostat_eta, seed};
  if (options.adaptive_target >= 0)
    return stage::AdaptiveP{options.adaptive_target, options.adaptive_decay, seed};
  return stage::Draw{seed};
}

/// Whether a stage has a place in front of the one that selects: where that one takes the likeliest or bounds
/// the list itself, nothing else may.
bool has_place(std::string_view name, const SamplingOptions& options) {
  if (name == "penalties" || name == "dry") return true;
  if (options.temp <= 0) return false;
  return options.mirostat == 0 || name == "temp";
}

}  // namespace

std::vector<SamplerStage> usual_chain(const SamplingOptions& options, const Tokenizer* tokenizer) {
  if (options.mirostat < 0 || options.mirostat > 2)
    fail(ErrorCode::invalid_argument, "sampling: mirostat {} is not 0, 1 or 2", options.mirostat);
  const std::uint64_t seed = options.seed ? *options.seed : sampling::random_seed();
  std::vector<SamplerStage> stages;
  if (!options.logit_bias.empty()) stages.push_back(stage::Bias{options.logit_bias});
  for (const std::string& name : options.order) {
    SamplerStage named = named_stage(name, options, tokenizer, seed);
    if (has_place(name, options)) stages.push_back(std::move(named));
  }
  stages.push_back(selecting_stage(options, seed));
  return stages;
}

std::vector<std::string> parse_sampler_order(std::string_view list) {
  return guarded([&] {
    std::vector<std::string> order;
    std::string name;
    const auto finish = [&] {
      if (name == "temperature") name = "temp";
      if (name == "typical" || name == "typical_p") name = "typ_p";
      if (name.empty()) return;
      named_stage(name, {}, nullptr, 0);  // refuses a name that is none
      order.push_back(std::exchange(name, {}));
    };
    for (const char c : list) {
      if (c == ';' || c == ',') {
        finish();
      } else if (c != ' ') {
        name += c == '-' ? '_' : c;
      }
    }
    finish();
    return order;
  });
}

}  // namespace quipu
