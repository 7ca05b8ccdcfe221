// What is given to a context in one call.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "quipu/types.h"

namespace quipu {

/// Tokens, or embeddings in their place, each with its position, the sequences it belongs to, and whether its
/// logits are wanted. Only a container: what makes a batch acceptable is Context::decode's to say. Functions
/// that take the index of a token are Error(invalid_argument) for one outside [0, size()). Spans that are
/// given must not be the batch's own.
class Batch {
 public:
  Batch() = default;

  /// `tokens` of one sequence at consecutive positions from `first`; logits for the last only.
  static Batch text(std::span<const Token> tokens, Position first, SequenceId sequence = 0);

  void add(Token token, Position position, std::span<const SequenceId> sequences, bool output);
  void add(Token token, Position position, std::initializer_list<SequenceId> sequences, bool output);
  /// An embedding of the model's width instead of a token; all of a batch are equally wide, else
  /// Error(invalid_argument).
  void add(std::span<const float> embedding, Position position, std::span<const SequenceId> sequences,
           bool output);
  /// As text(), behind what is there.
  void append(std::span<const Token> tokens, Position first, SequenceId sequence = 0);

  void set_token(std::size_t i, Token token);
  void set_position(std::size_t i, Position position);
  void set_sequences(std::size_t i, std::span<const SequenceId> sequences);
  /// Whether logits are wanted.
  void set_output(std::size_t i, bool output);
  /// Keeps its memory for the next batch.
  void clear() noexcept;

  std::size_t size() const noexcept { return tokens_.size(); }
  bool empty() const noexcept { return tokens_.empty(); }
  /// kNoToken where there is an embedding.
  Token token(std::size_t i) const;
  /// Empty where there is a token.
  std::span<const float> embedding(std::size_t i) const;
  Position position(std::size_t i) const;
  std::span<const SequenceId> sequences(std::size_t i) const;
  bool output(std::size_t i) const;

  // The flat form of the same: arrays with an element for each token, but for sequences(), which are those of
  // all tokens one after the other, each token's up to its sequence_ends(), and embeddings(), which are rows
  // of embedding_width(), or none at all.
  std::span<const Token> tokens() const noexcept { return tokens_; }
  std::span<const float> embeddings() const noexcept { return embeddings_; }
  std::size_t embedding_width() const noexcept { return embedding_width_; }
  std::span<const Position> positions() const noexcept { return positions_; }
  std::span<const SequenceId> sequences() const noexcept { return sequences_; }
  std::span<const std::size_t> sequence_ends() const noexcept { return sequence_ends_; }
  std::span<const char> outputs() const noexcept { return outputs_; }

 private:
  void check(std::size_t i) const;
  std::size_t sequences_begin(std::size_t i) const { return i == 0 ? 0 : sequence_ends_[i - 1]; }

  std::vector<Token> tokens_;
  std::vector<float> embeddings_;  // [size(), embedding_width_] from the first one on
  std::size_t embedding_width_ = 0;
  std::vector<Position> positions_;
  std::vector<SequenceId> sequences_;
  std::vector<std::size_t> sequence_ends_;
  std::vector<char> outputs_;
};

}  // namespace quipu
