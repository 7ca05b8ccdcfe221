// The stages that exist so far. A parameter that is NaN is Error(invalid_argument) when the stage is made;
// values beyond a stage's range turn it off, as each says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sampling/random.h"
#include "sampling/stage.h"

namespace quipu::sampling {

/// Selects the likeliest token, first of equals.
class Greedy final : public Stage {
 public:
  std::string_view name() const override { return "greedy"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Greedy>(*this); }
};

/// Divides logits by a temperature. At 0 or below only the likeliest, first of equals, keeps a chance.
class Temperature final : public Stage {
 public:
  explicit Temperature(float temperature);
  std::string_view name() const override { return "temp"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Temperature>(*this); }

 private:
  float temperature_;
};

/// Keeps the k likeliest. Off for k <= 0; a k over the number of candidates only sorts.
class TopK final : public Stage {
 public:
  explicit TopK(std::int32_t k) : k_(k) {}
  std::string_view name() const override { return "top_k"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<TopK>(*this); }

 private:
  std::int32_t k_;
};

/// Keeps the fewest likeliest tokens whose probabilities reach p together (Holtzman et al., "The curious case
/// of neural text degeneration", 2020), and at least `min_keep`. Off for p >= 1; p <= 0 keeps `min_keep`.
class TopP final : public Stage {
 public:
  explicit TopP(float p, std::size_t min_keep = 1);
  std::string_view name() const override { return "top_p"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<TopP>(*this); }

 private:
  float p_;
  std::size_t min_keep_;
};

/// Keeps tokens at least p times as probable as the likeliest (Nguyen et al., "Turning up the heat: min-p
/// sampling", 2024), and at least `min_keep`. Off for p <= 0; p over 1 counts as 1.
class MinP final : public Stage {
 public:
  explicit MinP(float p, std::size_t min_keep = 1);
  std::string_view name() const override { return "min_p"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<MinP>(*this); }

 private:
  float p_;
  std::size_t min_keep_;
};

/// Selects by chance, each token with its probability: the first whose cumulative probability, in the list's
/// order, exceeds a uniform number. One number of the generator a draw, whatever the list.
class Draw final : public Stage {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed), random_(seed) {}
  std::string_view name() const override { return "dist"; }
  void apply(Candidates& candidates) override;
  void reset() override { random_ = Random(seed_); }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Draw>(*this); }

 private:
  std::uint64_t seed_;
  Random random_;
};

}  // namespace quipu::sampling
