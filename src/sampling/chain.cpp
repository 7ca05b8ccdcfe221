#include "sampling/chain.h"

#include <utility>

#include "base/error.h"

namespace quipu::sampling {

Chain::Chain(const Chain& other) {
  stages_.reserve(other.stages_.size());
  for (const auto& stage : other.stages_) stages_.push_back(stage->clone());
}

Chain& Chain::operator=(const Chain& other) {
  if (this != &other) *this = Chain(other);
  return *this;
}

void Chain::add(std::unique_ptr<Stage> stage) {
  QUIPU_CHECK(stage != nullptr);
  stages_.push_back(std::move(stage));
}

Token Chain::sample(std::span<const float> logits) {
  candidates_.assign(logits);
  apply(candidates_);
  if (candidates_.selected() != kNoToken) return candidates_.selected();
  return candidates_.likeliest().id;
}

void Chain::apply(Candidates& candidates) {
  for (const auto& stage : stages_) {
    stage->apply(candidates);
    if (candidates.selected() != kNoToken) return;
  }
}

void Chain::accept(Token token) {
  for (const auto& stage : stages_) stage->accept(token);
}

void Chain::reset() {
  for (const auto& stage : stages_) stage->reset();
}

}  // namespace quipu::sampling
