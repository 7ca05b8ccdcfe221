// Mirostat: holds the surprise of a text near a target by bounding how improbable a token may be.
// Basu, Ramachandran, Keskar, Varshney 2021, arXiv:2007.14966.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "sampling/random.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

constexpr double kLn2 = 0.69314718055994530942;

/// What both algorithms share: a bound in bits that moves against the error of the last surprise.
class Bound {
 public:
  Bound(float tau, float eta)
      : tau_(static_cast<double>(not_nan(tau, "mirostat_tau"))),
        eta_(static_cast<double>(not_nan(eta, "mirostat_eta"))) {
    reset();
  }
  void reset() { bits_ = 2 * tau_; }
  double bits() const { return bits_; }
  void learn(double surprise) {
    // A bound that overflowed could not come back.
    constexpr double kMost = 1e6;
    bits_ = std::clamp(bits_ - eta_ * (surprise - tau_), -kMost, kMost);
  }

 private:
  double tau_, eta_, bits_ = 0;
};

/// Bits of a probability.
double surprise(float prob) {
  return -exact_math::log(static_cast<double>(prob)) / kLn2;
}

/// Selects by chance and teaches the bound what came of it.
void draw_and_learn(Candidates& candidates, double uniform, Bound& bound) {
  candidates.normalize();
  candidates.draw(uniform);
  const auto items = candidates.items();
  const auto chosen = std::find_if(items.begin(), items.end(), [&](const Candidate& candidate) {
    return candidate.id == candidates.selected();
  });
  bound.learn(surprise(chosen->prob));
}

class Mirostat final : public Stage {
 public:
  explicit Mirostat(const stage::Mirostat& description)
      : bound_(description.tau, description.eta),
        m_(static_cast<std::size_t>(std::max(description.m, 2))),
        n_vocab_(description.n_vocab),
        seed_(description.seed),
        random_(seed_) {}
  std::string_view name() const override { return "mirostat"; }
  void apply(Candidates& candidates) override {
    candidates.normalize();
    candidates.sort_front(m_);
    candidates.keep_likeliest(likeliest_to_keep(candidates));
    draw_and_learn(candidates, random_.uniform(), bound_);
  }
  void reset() override {
    bound_.reset();
    random_ = Random(seed_);
  }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Mirostat>(*this); }

 private:
  static double zipf_exponent(std::span<const Candidate> likeliest);
  std::size_t likeliest_to_keep(const Candidates& candidates) const;

  Bound bound_;
  std::size_t m_, n_vocab_;
  std::uint64_t seed_;
  Random random_;
};

/// Least squares over the ratios of neighbours (equation 4 of the paper).
double Mirostat::zipf_exponent(std::span<const Candidate> likeliest) {
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < likeliest.size() && likeliest[i + 1].prob > 0; ++i) {
    const auto rank = static_cast<double>(i);
    const double t = exact_math::log((rank + 2) / (rank + 1));
    const double b =
        exact_math::log(static_cast<double>(likeliest[i].prob) / static_cast<double>(likeliest[i + 1].prob));
    products += t * b;
    squares += t * t;
  }
  return squares > 0 ? products / squares : 0;
}

/// k of algorithm 1: the rank at which Zipf's law reaches the bound.
std::size_t Mirostat::likeliest_to_keep(const Candidates& candidates) const {
  const double s = zipf_exponent(candidates.items().first(std::min(m_, candidates.size())));
  const double epsilon = s - 1;
  const auto n = static_cast<double>(n_vocab_ > 0 ? n_vocab_ : candidates.size());
  const double tail = 1 - exact_math::pow(n, -epsilon);
  // (1 - n^-epsilon) / epsilon tends to ln n.
  const double scale = std::abs(epsilon) < 1e-9 ? 1 / exact_math::log(n) : epsilon / tail;
  const double k = exact_math::pow(scale * exact_math::pow(2, bound_.bits()), 1 / s);
  if (!(k < static_cast<double>(candidates.size()))) return candidates.size();  // also NaN, from s = 0
  return std::max<std::size_t>(static_cast<std::size_t>(k), 1);
}

class Mirostat2 final : public Stage {
 public:
  explicit Mirostat2(const stage::Mirostat2& description)
      : bound_(description.tau, description.eta), seed_(description.seed), random_(seed_) {}
  std::string_view name() const override { return "mirostat2"; }
  void apply(Candidates& candidates) override {
    candidates.normalize();
    const float most = candidates.likeliest().prob;
    candidates.keep_if([&](const Candidate& candidate) {
      return candidate.prob == most || surprise(candidate.prob) <= bound_.bits();
    });
    draw_and_learn(candidates, random_.uniform(), bound_);
  }
  void reset() override {
    bound_.reset();
    random_ = Random(seed_);
  }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Mirostat2>(*this); }

 private:
  Bound bound_;
  std::uint64_t seed_;
  Random random_;
};

}  // namespace

std::unique_ptr<Stage> make_stage(const stage::Mirostat& description) {
  return std::make_unique<Mirostat>(description);
}
std::unique_ptr<Stage> make_stage(const stage::Mirostat2& description) {
  return std::make_unique<Mirostat2>(description);
}

}  // namespace quipu::sampling
