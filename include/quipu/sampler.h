// Choosing the next token from a row of logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "quipu/types.h"

namespace quipu {

/// The usual chain, in this order: top-k, top-p, min-p, temperature, seeded draw.
struct SamplingOptions {
  float temp = 0.8f;        ///< 0 and below: always the likeliest token
  std::int32_t top_k = 40;  ///< keep the k likeliest; 0 and below: off
  float top_p = 0.95f;  ///< keep the fewest likeliest that have this probability together; 1 and above: off
  float min_p = 0.05f;  ///< keep those at least this fraction as probable as the likeliest; 0 and below: off
  /// The same seed, logits and options give the same tokens on every machine. Nothing: a random one.
  std::optional<std::uint64_t> seed = std::nullopt;
};

/// Stages by themselves, for chains in another order. Off values are as above.
namespace stage {
struct Greedy {};  ///< selects the likeliest, first of equals
struct Temperature {
  float temp = 1;
};
struct TopK {
  std::int32_t k = 0;
};
struct TopP {
  float p = 1;
  std::size_t min_keep = 1;  ///< keep at least so many
};
struct MinP {
  float p = 0;
  std::size_t min_keep = 1;
};
struct Draw {  ///< selects by chance, each token with its probability
  std::uint64_t seed = 0;
};
}  // namespace stage
using SamplerStage =
    std::variant<stage::Greedy, stage::Temperature, stage::TopK, stage::TopP, stage::MinP, stage::Draw>;

/// A chain of stages with its state (generator, history). A copy continues on its own from the same state.
/// Used by one thread at a time.
class Sampler {
 public:
  /// Error(invalid_argument) for a parameter that is NaN.
  explicit Sampler(const SamplingOptions& options = {});
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
