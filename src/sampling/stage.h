// What every stage of a sampling chain offers. A stage is one small class; adding one touches its own file
// and whoever builds chains.
#pragma once

#include <memory>
#include <string_view>

#include "sampling/candidates.h"

namespace quipu::sampling {

class Stage {
 public:
  virtual ~Stage() = default;

  /// As users write it: "top_k".
  virtual std::string_view name() const = 0;
  /// Narrows, reweighs or selects. The list has at least one candidate of finite logit and keeps at least one
  /// that can be selected.
  virtual void apply(Candidates& candidates) = 0;
  /// Told of every token that became part of the text, also those of the prompt.
  virtual void accept(Token /*token*/) {}
  /// Back to the state it was made in.
  virtual void reset() {}
  /// A copy with its state.
  virtual std::unique_ptr<Stage> clone() const = 0;

 protected:
  Stage() = default;
  Stage(const Stage&) = default;
  Stage& operator=(const Stage&) = default;
};

}  // namespace quipu::sampling
