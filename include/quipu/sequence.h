// One conversation of a context.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "quipu/context.h"

namespace quipu {

/// A context and the number of a sequence: what Context can do to a sequence, without naming it each time.
/// Cheap to copy; valid while the context is there and is not moved. The number is checked by what is called.
class Sequence {
 public:
  Sequence(Context& context, SequenceId id) : context_(&context), id_(id) {}

  SequenceId id() const noexcept { return id_; }
  bool is_empty() const { return context_->max_position(id_) < 0; }
  /// Where the next token goes.
  Position end() const { return context_->max_position(id_) + 1; }

  /// Computes tokens that continue it, with logits for the last.
  DecodeResult decode(std::span<const Token> tokens) const {
    return context_->decode(Batch::text(tokens, end(), id_));
  }

  // As the functions of Context.
  bool remove(Position p0 = -1, Position p1 = -1) const { return context_->remove(id_, p0, p1); }
  void copy_to(SequenceId to, Position p0 = -1, Position p1 = -1) const { context_->copy(id_, to, p0, p1); }
  void add(Position p0, Position p1, Position delta) const { context_->add(id_, p0, p1, delta); }
  void divide(Position p0, Position p1, Position divisor) const { context_->divide(id_, p0, p1, divisor); }
  std::span<const float> embedding() const { return context_->sequence_embedding(id_); }
  /// `options.sequence` is this one, whatever it says.
  std::vector<std::byte> save(SaveOptions options = {}) const {
    options.sequence = id_;
    return context_->save(options);
  }
  std::vector<Token> load(std::span<const std::byte> state) const { return context_->load(state, id_); }

 private:
  Context* context_;
  SequenceId id_;
};

}  // namespace quipu
