#include "cli/sampling_arguments.h"

#include <fmt/format.h>

#include <cstdlib>

#include "quipu/error.h"

namespace quipu::cli {
namespace {

constexpr const char* kGroup = "Sampling";

/// "42+1.5", "42-3" or "42-inf".
LogitBias parse_bias(const std::string& text) {
  const std::size_t sign = text.find_first_of("+-", 1);
  char* end_of_token = nullptr;
  char* end_of_bias = nullptr;
  const long token = std::strtol(text.c_str(), &end_of_token, 10);
  if (sign != std::string::npos && end_of_token == text.c_str() + sign && token >= 0 && token <= 0x7fffffff) {
    const float bias = std::strtof(end_of_token, &end_of_bias);
    if (*end_of_bias == 0 && end_of_bias > end_of_token + 1) return {static_cast<Token>(token), bias};
  }
  throw CLI::ValidationError("--logit-bias", fmt::format("\"{}\" is not TOKEN+BIAS or TOKEN-BIAS", text));
}

std::vector<std::string> parse_order(const std::string& text) {
  try {
    return parse_sampler_order(text);
  } catch (const Error& error) {
    throw CLI::ValidationError("--samplers", error.message());
  }
}

}  // namespace

template <typename T>
CLI::Option* SamplingArguments::add(CLI::App& command, const char* name, T SamplingOptions::*member,
                                    const char* help) {
  const auto keep = [this, member](const T& value) {
    changes_.push_back([member, value](SamplingOptions& options) { options.*member = value; });
  };
  return command.add_option_function<T>(name, keep, help)->group(kGroup);
}

void SamplingArguments::add_to(CLI::App& command) {
  using O = SamplingOptions;
  // CLI11 would take -1 for the largest unsigned number.
  const CLI::Validator not_negative(
      [](const std::string& text) {
        return text.starts_with('-') ? fmt::format("{} is negative", text) : std::string();
      },
      "");
  add(command, "--temp", &O::temp, "Temperature; 0: always the likeliest token");
  add(command, "--top-k", &O::top_k, "Keep the k likeliest tokens; 0: all");
  add(command, "--top-p", &O::top_p, "Keep the likeliest tokens with this probability together; 1: all");
  add(command, "--min-p", &O::min_p,
      "Keep tokens at least this fraction as probable as the likeliest; 0: all");
  command
      .add_option_function<std::uint64_t>(
          "--seed", [this](std::uint64_t seed) { changes_.push_back([seed](O& o) { o.seed = seed; }); },
          "Seed of the random choices; random if absent")
      ->type_name("N")
      ->check(not_negative)
      ->group(kGroup);
  add(command, "--repeat-last-n", &O::penalty_last_n, "Tokens that penalties look back on; 0: off, -1: all");
  add(command, "--repeat-penalty", &O::penalty_repeat, "Divides logits of tokens in the recent text; 1: off");
  add(command, "--frequency-penalty", &O::penalty_freq, "Lowers them for each occurrence; 0: off");
  add(command, "--presence-penalty", &O::penalty_present, "Lowers them once; 0: off");
  add(command, "--typical", &O::typical_p, "Locally typical sampling; 1: off");
  add(command, "--top-nsigma", &O::top_n_sigma,
      "Keep logits within n standard deviations of the highest; -1: off");
  add(command, "--xtc-probability", &O::xtc_probability, "Chance of excluding the top choices; 0: off");
  add(command, "--xtc-threshold", &O::xtc_threshold, "Probability that makes a token a top choice");
  add(command, "--dynatemp-range", &O::dynatemp_range,
      "Temperature follows entropy, so far up and down; 0: off");
  add(command, "--dynatemp-exp", &O::dynatemp_exponent, "Exponent of that entropy");
  add(command, "--dry-multiplier", &O::dry_multiplier, "Penalty on continuing repetitions; 0: off");
  add(command, "--dry-base", &O::dry_base, "It grows by this factor for each token of the repetition");
  add(command, "--dry-allowed-length", &O::dry_allowed_length, "Longest repetition that is free");
  add(command, "--dry-penalty-last-n", &O::dry_last_n, "Tokens that it looks back on; 0: off, -1: all");
  add(command, "--mirostat", &O::mirostat, "Hold the surprise of the text steady: algorithm 1 or 2; 0: off")
      ->check(CLI::Range(0, 2).description(""));
  add(command, "--mirostat-ent", &O::mirostat_tau, "Its target, in bits");
  add(command, "--mirostat-lr", &O::mirostat_eta, "Its rate of learning");
  add(command, "--adaptive-target", &O::adaptive_target,
      "Favour tokens near this probability; negative: off");
  add(command, "--adaptive-decay", &O::adaptive_decay, "How long it remembers: 0 to 0.99");
  add_lists(command);
}

void SamplingArguments::add_lists(CLI::App& command) {
  using Texts = std::vector<std::string>;
  const auto keep_breakers = [this](const Texts& given) {
    const Texts texts = given == Texts{"none"} ? Texts() : given;
    changes_.push_back([texts](SamplingOptions& options) { options.dry_breakers = texts; });
  };
  const auto keep_biases = [this](const Texts& given) {
    std::vector<LogitBias> biases;
    for (const std::string& text : given) biases.push_back(parse_bias(text));
    changes_.push_back([biases](SamplingOptions& options) { options.logit_bias = biases; });
  };
  const auto keep_order = [this](const std::string& text) {
    changes_.push_back([order = parse_order(text)](SamplingOptions& options) { options.order = order; });
  };
  command
      .add_option_function<Texts>(
          "--dry-sequence-breaker", keep_breakers,
          "Text that no repetition extends across; may be repeated; none: no such text")
      ->allow_extra_args(false)
      ->take_all()
      ->group(kGroup);
  command
      .add_option_function<Texts>("--logit-bias", keep_biases,
                                  "TOKEN+BIAS or TOKEN-BIAS, as in 15043-inf; may be repeated")
      ->allow_extra_args(false)
      ->take_all()
      ->group(kGroup);
  command
      .add_option_function<std::string>("--samplers", keep_order,
                                        "Names of stages in their order, separated by ;")
      ->group(kGroup);
}

void SamplingArguments::apply_to(SamplingOptions& options) const {
  for (const auto& change : changes_) change(options);
}

Json settings_json(const SamplingOptions& o, std::uint64_t seed) {
  Json biases = Json::array();
  for (const LogitBias& bias : o.logit_bias)
    biases.push_back({{"token", bias.token}, {"bias", json_of(bias.bias)}});
  return {{"temp", json_of(o.temp)},
          {"dynatemp_range", json_of(o.dynatemp_range)},
          {"dynatemp_exponent", json_of(o.dynatemp_exponent)},
          {"top_k", o.top_k},
          {"top_p", json_of(o.top_p)},
          {"min_p", json_of(o.min_p)},
          {"typical_p", json_of(o.typical_p)},
          {"top_n_sigma", json_of(o.top_n_sigma)},
          {"xtc_probability", json_of(o.xtc_probability)},
          {"xtc_threshold", json_of(o.xtc_threshold)},
          {"penalty_last_n", o.penalty_last_n},
          {"penalty_repeat", json_of(o.penalty_repeat)},
          {"penalty_freq", json_of(o.penalty_freq)},
          {"penalty_present", json_of(o.penalty_present)},
          {"dry_multiplier", json_of(o.dry_multiplier)},
          {"dry_base", json_of(o.dry_base)},
          {"dry_allowed_length", o.dry_allowed_length},
          {"dry_last_n", o.dry_last_n},
          {"dry_breakers", o.dry_breakers},
          {"mirostat", o.mirostat},
          {"mirostat_tau", json_of(o.mirostat_tau)},
          {"mirostat_eta", json_of(o.mirostat_eta)},
          {"adaptive_target", json_of(o.adaptive_target)},
          {"adaptive_decay", json_of(o.adaptive_decay)},
          {"logit_bias", biases},
          {"samplers", o.order},
          {"seed", seed}};
}

}  // namespace quipu::cli
