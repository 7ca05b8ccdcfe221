// Stages that change the logits of some tokens: those of the recent text, and those the user names.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sampling/history.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

class Penalties final : public Stage {
 public:
  explicit Penalties(const stage::Penalties& description)
      : repeat_(not_nan(description.repeat, "penalty_repeat")),
        frequency_(not_nan(description.frequency, "penalty_freq")),
        presence_(not_nan(description.presence, "penalty_present")),
        history_(description.last_n) {
    if (repeat_ <= 0)
      fail(ErrorCode::invalid_argument, "sampling: penalty_repeat {} is not above 0", repeat_);
  }
  std::string_view name() const override { return "penalties"; }
  void apply(Candidates& candidates) override;
  void accept(Token token) override { history_.add(token); }
  void reset() override { history_.clear(); }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Penalties>(*this); }

 private:
  float penalized(float logit, std::size_t count) const {
    const float scaled = logit > 0 ? logit / repeat_ : logit * repeat_;
    return bounded_change(logit, scaled - static_cast<float>(count) * frequency_ - presence_);
  }

  float repeat_, frequency_, presence_;
  History history_;
  std::vector<Token> tokens_;        // scratch: those of the history, each once, ascending
  std::vector<std::size_t> counts_;  // how often each of them occurs
};

void Penalties::apply(Candidates& candidates) {
  const auto recent = history_.tokens();
  if (recent.empty() || (repeat_ == 1 && frequency_ == 0 && presence_ == 0)) return;
  tokens_.assign(recent.begin(), recent.end());
  std::sort(tokens_.begin(), tokens_.end());
  counts_.clear();
  std::size_t n = 0;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (n == 0 || tokens_[i] != tokens_[n - 1]) {
      tokens_[n++] = tokens_[i];
      counts_.push_back(0);
    }
    ++counts_.back();
  }
  tokens_.resize(n);
  candidates.change_logits_of(tokens_,
                              [&](std::size_t i, float logit) { return penalized(logit, counts_[i]); });
}

class Bias final : public Stage {
 public:
  explicit Bias(std::vector<LogitBias> biases);
  std::string_view name() const override { return "logit_bias"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Bias>(*this); }

 private:
  std::vector<Token> tokens_;
  std::vector<float> biases_;
};

Bias::Bias(std::vector<LogitBias> biases) {
  std::sort(biases.begin(), biases.end(),
            [](const LogitBias& a, const LogitBias& b) { return a.token < b.token; });
  for (const LogitBias& bias : biases) {
    if (!tokens_.empty() && tokens_.back() == bias.token)
      fail(ErrorCode::invalid_argument, "sampling: logit_bias names token {} twice", bias.token);
    tokens_.push_back(bias.token);
    biases_.push_back(not_nan(bias.bias, "logit_bias"));
  }
}

void Bias::apply(Candidates& candidates) {
  if (tokens_.empty()) return;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  candidates.change_logits_of(tokens_, [&](std::size_t i, float logit) {
    // What is impossible stays so, whatever is added; a certain token can still be forbidden.
    if (logit == -kInfinity || std::isinf(biases_[i]))
      return std::min(logit, biases_[i]) == -kInfinity ? -kInfinity : biases_[i];
    return bounded_change(logit, logit + biases_[i]);
  });
  if (candidates.max_logit() == -kInfinity)
    fail(ErrorCode::invalid_argument, "sampling: logit_bias leaves no token that could be chosen");
}

}  // namespace

std::unique_ptr<Stage> make_stage(const stage::Penalties& description) {
  return std::make_unique<Penalties>(description);
}
std::unique_ptr<Stage> make_stage(const stage::Bias& description) {
  return std::make_unique<Bias>(description.biases);
}

}  // namespace quipu::sampling
