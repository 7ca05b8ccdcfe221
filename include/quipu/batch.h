// What is given to a context in one call.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "quipu/types.h"

namespace quipu {

/// Tokens, each with its position, the sequences it belongs to, and whether its logits are wanted. Only a
/// container: what makes a batch acceptable is Context::decode's to say.
class Batch {
 public:
  Batch() = default;

  /// `tokens` of one sequence at consecutive positions from `first`; logits for the last only.
  static Batch text(std::span<const Token> tokens, Position first, SequenceId sequence = 0) {
    Batch batch;
    batch.append(tokens, first, sequence);
    return batch;
  }

  void add(Token token, Position position, std::span<const SequenceId> sequences, bool output) {
    tokens_.push_back(token);
    positions_.push_back(position);
    sequences_.insert(sequences_.end(), sequences.begin(), sequences.end());
    sequence_ends_.push_back(sequences_.size());
    outputs_.push_back(output ? 1 : 0);
  }
  void add(Token token, Position position, std::initializer_list<SequenceId> sequences, bool output) {
    add(token, position, std::span(sequences.begin(), sequences.size()), output);
  }
  /// As text(), behind what is there.
  void append(std::span<const Token> tokens, Position first, SequenceId sequence = 0) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      add(tokens[i], first + static_cast<Position>(i), {sequence}, i + 1 == tokens.size());
    }
  }
  /// Whether logits are wanted of token i < size().
  void set_output(std::size_t i, bool output) { outputs_[i] = output ? 1 : 0; }
  void clear() noexcept {
    tokens_.clear();
    positions_.clear();
    sequences_.clear();
    sequence_ends_.clear();
    outputs_.clear();
  }

  std::size_t size() const noexcept { return tokens_.size(); }
  bool empty() const noexcept { return tokens_.empty(); }
  Token token(std::size_t i) const { return tokens_[i]; }
  Position position(std::size_t i) const { return positions_[i]; }
  std::span<const SequenceId> sequences(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : sequence_ends_[i - 1];
    return std::span(sequences_).subspan(begin, sequence_ends_[i] - begin);
  }
  bool output(std::size_t i) const { return outputs_[i] != 0; }

  // The flat form of the same: arrays with an element for each token, but for sequences(), which are those of
  // all tokens one after the other, each token's up to its sequence_ends().
  std::span<const Token> tokens() const noexcept { return tokens_; }
  std::span<const Position> positions() const noexcept { return positions_; }
  std::span<const SequenceId> sequences() const noexcept { return sequences_; }
  std::span<const std::size_t> sequence_ends() const noexcept { return sequence_ends_; }
  std::span<const char> outputs() const noexcept { return outputs_; }

 private:
  std::vector<Token> tokens_;
  std::vector<Position> positions_;
  std::vector<SequenceId> sequences_;
  std::vector<std::size_t> sequence_ends_;
  std::vector<char> outputs_;
};

}  // namespace quipu
