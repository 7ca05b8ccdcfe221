// Filling a gap in a text: decides between ending and going on, and lets tokens that begin alike count
// together.
#include <algorithm>
#include <string>
#include <utility>

#include "base/math.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

class Infill final : public Stage {
 public:
  explicit Infill(std::shared_ptr<const TokenTexts> texts) : texts_(std::move(texts)) {
    if (texts_ == nullptr)
      fail(ErrorCode::invalid_argument, "sampling: infill lacks the texts of the tokens");
  }
  std::string_view name() const override { return "infill"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Infill>(*this); }

 private:
  bool ends(const Candidate& candidate) const {
    const auto at = static_cast<std::size_t>(candidate.id);
    return at < texts_->end_generation.size() && texts_->end_generation[at];
  }
  std::string_view piece(const Candidate& candidate) const {
    const auto at = static_cast<std::size_t>(candidate.id);
    return at < texts_->pieces.size() ? std::string_view(texts_->pieces[at]) : std::string_view();
  }
  bool end_is_probable(const Candidates& candidates) const;
  void combine_prefixes(Candidates& candidates) const;
  std::size_t keep_probable(Candidates& candidates, float least) const;

  std::shared_ptr<const TokenTexts> texts_;
};

/// The tokens that end the text have, all together, at least a third of an equal share of the rest.
bool Infill::end_is_probable(const Candidates& candidates) const {
  double p_end = 0, p_text = 0;
  for (const Candidate& candidate : candidates.items())
    (ends(candidate) ? p_end : p_text) += static_cast<double>(candidate.prob);
  return 3 * p_end * static_cast<double>(candidates.size()) > p_text;
}

/// Where the text of one begins that of another, the likelier takes the other's probability. The list is in
/// order of likelihood.
void Infill::combine_prefixes(Candidates& candidates) const {
  const auto items = candidates.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t j = i + 1; j < items.size() && items[i].prob > 0; ++j) {
      if (items[j].prob <= 0 || piece(items[i]).empty() || piece(items[j]).empty()) continue;
      if (!piece(items[j]).starts_with(piece(items[i])) && !piece(items[i]).starts_with(piece(items[j])))
        continue;
      items[i].prob += items[j].prob;
      items[j].prob = 0;
    }
  }
}

/// Drops text below a probability; returns how much of it remains. Nothing is dropped if that would be all.
std::size_t Infill::keep_probable(Candidates& candidates, float least) const {
  const auto stays = [&](const Candidate& c) { return c.prob > 0 && (ends(c) || c.prob >= least); };
  const auto items = candidates.items();
  const auto n_text =
      std::count_if(items.begin(), items.end(), [&](const Candidate& c) { return !ends(c) && stays(c); });
  if (n_text > 0) candidates.keep_if(stays);
  return static_cast<std::size_t>(n_text);
}

void Infill::apply(Candidates& candidates) {
  constexpr std::size_t kMost = 512;
  constexpr float kLeast = 0.2f;
  candidates.keep_likeliest(kMost);
  candidates.normalize();
  if (end_is_probable(candidates)) return candidates.keep_if([&](const Candidate& c) { return ends(c); });
  combine_prefixes(candidates);
  const std::size_t n_text = keep_probable(candidates, kLeast);
  if (n_text == 0)
    return texts_->end == kNoToken ? candidates.keep_likeliest(1) : candidates.become(texts_->end);
  candidates.replace_logits(
      [](const Candidate& c) { return static_cast<float>(exact_math::log(static_cast<double>(c.prob))); });
  candidates.normalize();
  keep_probable(candidates, 1.0f / static_cast<float>(n_text + 1));
}

}  // namespace

std::unique_ptr<Stage> make_stage(const stage::Infill& description) {
  return std::make_unique<Infill>(description.texts);
}

}  // namespace quipu::sampling
