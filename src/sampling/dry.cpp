// DRY, "don't repeat yourself": lowers tokens that would continue a repetition of the recent text.
// https://github.com/oobabooga/text-generation-webui/pull/5677 describes it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/math.h"
#include "sampling/history.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

class Dry final : public Stage {
 public:
  explicit Dry(const stage::Dry& description);
  std::string_view name() const override { return "dry"; }
  void apply(Candidates& candidates) override;
  void accept(Token token) override { history_.add(token); }
  void reset() override { history_.clear(); }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Dry>(*this); }

 private:
  /// A token that would continue a repetition of so many tokens.
  struct Continuation {
    Token token;
    std::size_t length;
  };

  bool breaks_alone(Token token) const;
  std::size_t tokens_since_breaker(std::span<const Token> text) const;
  void find_repetitions(std::span<const Token> text, std::size_t longest);
  void find_continuations(std::span<const Token> text);
  float penalty(std::size_t length) const;

  float multiplier_, base_;
  std::size_t allowed_length_;
  std::vector<std::vector<Token>> breakers_;  // ascending: those that begin with one token are neighbours
  History history_;
  std::vector<std::size_t> repeats_;  // scratch: how long a repetition of the text's end ends at each place
  std::vector<Continuation> continuations_;  // ascending tokens, each once
  std::vector<Token> tokens_;                // those of continuations_
};

Dry::Dry(const stage::Dry& description)
    : multiplier_(not_nan(description.multiplier, "dry_multiplier")),
      base_(not_nan(description.base, "dry_base")),
      allowed_length_(static_cast<std::size_t>(std::max(description.allowed_length, 0))),
      breakers_(description.breakers),
      history_(multiplier_ == 0 || base_ < 1 ? 0 : description.last_n) {
  std::erase_if(breakers_, [](const auto& breaker) { return breaker.empty(); });
  std::sort(breakers_.begin(), breakers_.end());
}

bool Dry::breaks_alone(Token token) const {
  const auto first = std::lower_bound(breakers_.begin(), breakers_.end(), std::vector<Token>{token});
  return first != breakers_.end() && first->size() == 1 && first->front() == token;
}

/// How many tokens follow the last breaker; all of them without one.
std::size_t Dry::tokens_since_breaker(std::span<const Token> text) const {
  for (std::size_t at = text.size(); at-- > 0;) {
    const auto after = text.subspan(at);
    std::size_t longest = 0;
    for (auto breaker = std::lower_bound(breakers_.begin(), breakers_.end(), std::vector<Token>{text[at]});
         breaker != breakers_.end() && breaker->front() == text[at]; ++breaker) {
      if (breaker->size() <= after.size() && std::equal(breaker->begin(), breaker->end(), after.begin()))
        longest = std::max(longest, breaker->size());
    }
    if (longest > 0) return after.size() - longest;
  }
  return text.size();
}

/// repeats_[i]: how many tokens up to and with text[i] equal the text's last ones, `longest` at most. This is
/// the Z function of the reversed text (Gusfield 1997, section 1.4): linear in its length.
void Dry::find_repetitions(std::span<const Token> text, std::size_t longest) {
  const std::size_t n = text.size();
  const auto from_end = [&](std::size_t i) { return text[n - 1 - i]; };
  repeats_.assign(n, 0);
  std::size_t left = 0, right = 0;  // the match that reaches furthest: [left, right), counted from the end
  for (std::size_t i = 1; i < n; ++i) {
    std::size_t length = i < right ? std::min(right - i, repeats_[n - 1 - (i - left)]) : 0;
    while (i + length < n && from_end(length) == from_end(i + length)) ++length;
    if (i + length > right) {
      left = i;
      right = i + length;
    }
    repeats_[n - 1 - i] = length;
  }
  for (std::size_t& length : repeats_) length = std::min(length, longest);
}

/// For each token that follows a repetition, the longest that it follows.
void Dry::find_continuations(std::span<const Token> text) {
  continuations_.clear();
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (repeats_[i] >= std::max<std::size_t>(allowed_length_, 1) && !breaks_alone(text[i + 1]))
      continuations_.push_back({text[i + 1], repeats_[i]});
  }
  std::sort(continuations_.begin(), continuations_.end(), [](const Continuation& a, const Continuation& b) {
    return std::pair(a.token, b.length) < std::pair(b.token, a.length);
  });
  const auto last =
      std::unique(continuations_.begin(), continuations_.end(),
                  [](const Continuation& a, const Continuation& b) { return a.token == b.token; });
  continuations_.erase(last, continuations_.end());
}

float Dry::penalty(std::size_t length) const {
  constexpr double kMax = static_cast<double>(std::numeric_limits<float>::max());
  const double value =
      static_cast<double>(multiplier_) *
      exact_math::pow(static_cast<double>(base_), static_cast<double>(length - allowed_length_));
  return static_cast<float>(std::clamp(value, -kMax, kMax));
}

void Dry::apply(Candidates& candidates) {
  const auto text = history_.tokens();
  const std::size_t longest = tokens_since_breaker(text);
  if (longest == 0 || longest < allowed_length_) return;
  find_repetitions(text, longest);
  find_continuations(text);
  if (continuations_.empty()) return;
  tokens_.clear();
  for (const Continuation& continuation : continuations_) tokens_.push_back(continuation.token);
  candidates.change_logits_of(tokens_, [&](std::size_t i, float logit) {
    return bounded_change(logit, logit - penalty(continuations_[i].length));
  });
}

}  // namespace

std::unique_ptr<Stage> make_stage(const stage::Dry& description) {
  return std::make_unique<Dry>(description);
}

}  // namespace quipu::sampling
