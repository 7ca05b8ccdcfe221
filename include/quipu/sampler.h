// Choosing the next token from a row of logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quipu/stages.h"
#include "quipu/tokenizer.h"
#include "quipu/types.h"

namespace quipu {

/// The usual chain; what each number does is told by the stage of its name in quipu/stages.h. Nothing but
/// temp, top_k, top_p and min_p does anything by default.
struct SamplingOptions {
  float temp = 0.8f;  ///< 0 and below: always the likeliest token, after bias, penalties and dry
  float dynatemp_range = 0;
  float dynatemp_exponent = 1;
  std::int32_t top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  float typical_p = 1;
  float top_n_sigma = -1;
  float xtc_probability = 0;
  float xtc_threshold = 0.1f;
  std::size_t min_keep = 1;  ///< of top_p, min_p, typical_p and xtc
  std::int32_t penalty_last_n = 64;
  float penalty_repeat = 1;
  float penalty_freq = 0;
  float penalty_present = 0;
  float dry_multiplier = 0;
  float dry_base = 1.75f;
  std::int32_t dry_allowed_length = 2;
  std::int32_t dry_last_n = -1;
  /// Texts that no repetition extends across. They need a tokenizer where dry is on.
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
  std::int32_t mirostat = 0;  ///< 1 or 2: that algorithm draws, and of the other stages bias, penalties, dry
                              ///< and temperature remain
  float mirostat_tau = 5;
  float mirostat_eta = 0.1f;
  float adaptive_target = -1;  ///< 0 and above: adaptive-p draws
  float adaptive_decay = 0.9f;
  std::vector<LogitBias> logit_bias = {};  ///< comes before everything
  /// Names of stages in their order: penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temp. One
  /// may be left out, or be there several times. What draws comes behind them.
  std::vector<std::string> order = {"penalties", "dry",   "top_n_sigma", "top_k", "typ_p",
                                    "top_p",     "min_p", "xtc",         "temp"};
  /// The same seed, logits and options give the same tokens on every machine. Nothing: a random one.
  std::optional<std::uint64_t> seed = std::nullopt;
};

/// The names in a list like "top_k;top_p;temp", separated by semicolons or commas; "temperature" and
/// "typical" are temp and typ_p, and a dash counts as an underscore. Error(invalid_argument) for a name that
/// SamplingOptions::order does not know.
std::vector<std::string> parse_sampler_order(std::string_view list);

/// The token sequences in which a text of the list can begin, end or lie, for stage::Dry.
std::vector<std::vector<Token>> dry_breakers(const Tokenizer& tokenizer, std::span<const std::string> texts);

/// For stages that look at the text of tokens.
std::shared_ptr<const TokenTexts> token_texts(const Tokenizer& tokenizer);

/// A chain of stages with its state (generator, history). A copy continues on its own from the same state.
/// Used by one thread at a time.
class Sampler {
 public:
  /// Error(invalid_argument) for a parameter out of its range, an unknown name in the order, or dry breakers
  /// without a tokenizer.
  explicit Sampler(const SamplingOptions& options = {});
  Sampler(const SamplingOptions& options, const Tokenizer& tokenizer);
  /// Any list, also an empty one. Stages behind the first that selects are not reached; where none selects,
  /// the likeliest token that is left is taken.
  static Sampler chain(const std::vector<SamplerStage>& stages);
  Sampler(const Sampler& other);
  Sampler& operator=(const Sampler& other);
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  /// One logit for each token. NaN and minus infinity are never chosen. Error(invalid_argument) if no logit
  /// is finite; the sampler's state is then unchanged.
  Token sample(std::span<const float> logits);
  /// Tells the stages of a token that became part of the text: those of the prompt, and after sample() the
  /// one chosen.
  void accept(Token token);
  /// Back to the state it was made in.
  void reset();
  /// What draws were seeded with (given or random); nothing if no stage draws.
  std::optional<std::uint64_t> seed() const noexcept;

 private:
  struct Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace quipu
