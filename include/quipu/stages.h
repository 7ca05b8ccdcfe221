// The stages of which samplers are made, each described by its parameters. A stage narrows the list of tokens
// that may come next, reweighs it, or selects from it. A parameter that is NaN, or outside what its comment
// allows, is Error(invalid_argument) when a sampler is made of it; "off" means that the list stays as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "quipu/types.h"

namespace quipu {

struct LogitBias {
  Token token = kNoToken;
  float bias = 0;  ///< added to the token's logit; minus infinity: never this token
};

/// The text of every token, for stages that look at it; made by token_texts().
struct TokenTexts {
  std::vector<std::string> pieces;   ///< [n_vocab]; empty for tokens that are not text
  std::vector<bool> end_generation;  ///< [n_vocab]; the model has nothing more to say
  Token end = kNoToken;              ///< the usual one of these
};

namespace stage {

/// Selects the likeliest, first of equals.
struct Greedy {};

/// Selects by chance, each token with its probability. One number of its generator a draw, whatever the list.
struct Draw {
  std::uint64_t seed = 0;
};

/// Divides logits. At 0 and below only the likeliest, first of equals, keeps a chance; 1 is off.
struct Temperature {
  float temp = 1;
};

/// A temperature between temp - range (0 at least) and temp + range: the lowest where one token is certain,
/// the highest where all are equally probable, in between by (entropy / largest entropy) ^ exponent. The
/// fixed temperature for range <= 0.
struct DynamicTemperature {
  float temp = 1;
  float range = 0;
  float exponent = 1;
};

/// Keeps the k likeliest. Off for k <= 0; a k over the number of candidates only sorts.
struct TopK {
  std::int32_t k = 0;
};

/// Keeps the fewest likeliest tokens whose probabilities reach p together, and at least `min_keep`. Off for
/// p >= 1; p <= 0 keeps `min_keep`. Holtzman et al. 2020, "The curious case of neural text degeneration".
struct TopP {
  float p = 1;
  std::size_t min_keep = 1;
};

/// Keeps tokens at least p times as probable as the likeliest, and at least `min_keep`. Off for p <= 0; p
/// over 1 counts as 1. Nguyen et al. 2024, "Turning up the heat: min-p sampling".
struct MinP {
  float p = 0;
  std::size_t min_keep = 1;
};

/// Keeps the tokens whose surprise is nearest to the expected one, until they exceed p together, and at least
/// `min_keep`. Off for p >= 1. Meister et al. 2023, "Locally typical sampling".
struct Typical {
  float p = 1;
  std::size_t min_keep = 1;
};

/// Leaves a chance only to logits within n standard deviations of the highest. Off for n <= 0. Tang et al.
/// 2024, "Top-nσ: not all logits are you need".
struct TopNSigma {
  float n = 0;
};

/// "Exclude top choices": with the given probability removes all tokens that have at least `threshold`, save
/// the least probable of them, if `min_keep` remain. Off for probability <= 0 or threshold > 0.5. By
/// p-e-w, 2024.
struct Xtc {
  float probability = 0;
  float threshold = 0.1f;
  std::size_t min_keep = 1;
  std::uint64_t seed = 0;
};

/// Makes tokens of the recent text less likely. A positive logit is divided by `repeat`, another multiplied
/// (Keskar et al. 2019, CTRL); then `frequency` is subtracted for each occurrence, and `presence` once.
struct Penalties {
  std::int32_t last_n = 64;  ///< how many of the last tokens count; 0: off; below: all of the text
  float repeat = 1;          ///< above 0; 1: off
  float frequency = 0;
  float presence = 0;
};

/// "Don't repeat yourself": a token that would continue a repetition of `allowed_length` or more tokens loses
/// multiplier * base ^ (length - allowed_length). By p-e-w, 2024.
struct Dry {
  float multiplier = 0;             ///< 0: off
  float base = 1.75f;               ///< below 1: off
  std::int32_t allowed_length = 2;  ///< below 0 counts as 0
  std::int32_t last_n = -1;         ///< how many of the last tokens count; 0: off; below: all of the text
  /// Sequences that no repetition extends across; see dry_breakers(). Those of one token are not punished.
  std::vector<std::vector<Token>> breakers = {};
};

/// Adds to the logits of some tokens, each named once at most. Error(invalid_argument) when sampling if no
/// token is left.
struct Bias {
  std::vector<LogitBias> biases;
};

/// Selects by chance from as many of the likeliest as hold the surprise of the text near `tau` bits, learning
/// at rate `eta`. Basu et al. 2021, "Mirostat". This is its first algorithm, which estimates the exponent of
/// Zipf's law from `m` tokens; n_vocab 0 takes the number of candidates.
struct Mirostat {
  float tau = 5;
  float eta = 0.1f;
  std::int32_t m = 100;
  std::uint32_t n_vocab = 0;
  std::uint64_t seed = 0;
};

/// The second algorithm of the paper: tokens of more surprise than a bound that follows `tau` are dropped.
struct Mirostat2 {
  float tau = 5;
  float eta = 0.1f;
  std::uint64_t seed = 0;
};

/// Selects by chance, favouring tokens of a probability near `target`, shifted so that the average of what
/// was chosen, over about 1 / (1 - decay) tokens, tends to it. A plain draw for target < 0. MrJackSpade,
/// 2025.
struct AdaptiveP {
  float target = -1;
  float decay = 0.9f;  ///< 0 to 0.99
  std::uint64_t seed = 0;
};

/// For text in the middle of other text: ends it if all tokens that end it are probable enough, else lets the
/// likelier of two tokens of which one begins with the other have the chance of both, and drops what then is
/// improbable. Of more than 512 candidates the likeliest count.
struct Infill {
  std::shared_ptr<const TokenTexts> texts;  ///< must be there
};

}  // namespace stage

using SamplerStage =
    std::variant<stage::Greedy, stage::Draw, stage::Temperature, stage::DynamicTemperature, stage::TopK,
                 stage::TopP, stage::MinP, stage::Typical, stage::TopNSigma, stage::Xtc, stage::Penalties,
                 stage::Dry, stage::Bias, stage::Mirostat, stage::Mirostat2, stage::AdaptiveP, stage::Infill>;

}  // namespace quipu
