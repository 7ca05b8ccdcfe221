#include "quipu/batch.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "api/guard.h"
#include "base/error.h"

namespace quipu {

Batch Batch::text(std::span<const Token> tokens, Position first, SequenceId sequence) {
  Batch batch;
  batch.append(tokens, first, sequence);
  return batch;
}

void Batch::check(std::size_t i) const {
  if (i < size()) return;
  guarded([&] { fail(ErrorCode::invalid_argument, "there is no token {} in a batch of {}", i, size()); });
}

// Room comes first, so that a failed allocation leaves the batch as it was.
void Batch::add(Token token, Position position, std::span<const SequenceId> sequences, bool output) {
  guarded([&] {
    const auto make_room = [](auto& array, std::size_t n) {
      if (array.capacity() - array.size() < n)
        array.reserve(std::max(array.size() + n, 2 * array.capacity()));
    };
    make_room(embeddings_, embedding_width_);
    make_room(tokens_, 1);
    make_room(positions_, 1);
    make_room(sequences_, sequences.size());
    make_room(sequence_ends_, 1);
    make_room(outputs_, 1);
    embeddings_.resize(embeddings_.size() + embedding_width_);
    tokens_.push_back(token);
    positions_.push_back(position);
    sequences_.insert(sequences_.end(), sequences.begin(), sequences.end());
    sequence_ends_.push_back(sequences_.size());
    outputs_.push_back(output ? 1 : 0);
  });
}

void Batch::add(Token token, Position position, std::initializer_list<SequenceId> sequences, bool output) {
  add(token, position, std::span(sequences.begin(), sequences.size()), output);
}

void Batch::add(std::span<const float> embedding, Position position, std::span<const SequenceId> sequences,
                bool output) {
  guarded([&] {
    if (embedding.empty() || (embedding_width_ != 0 && embedding.size() != embedding_width_)) {
      fail(ErrorCode::invalid_argument, "an embedding of {} numbers in a batch of embeddings of {}",
           embedding.size(), embedding_width_);
    }
    if (embedding_width_ == 0) {
      embeddings_.resize(size() * embedding.size());
      embedding_width_ = embedding.size();
    }
    add(kNoToken, position, sequences, output);
    std::copy(embedding.begin(), embedding.end(),
              embeddings_.end() - static_cast<std::ptrdiff_t>(embedding_width_));
  });
}

void Batch::append(std::span<const Token> tokens, Position first, SequenceId sequence) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    // The highest position is none: decode refuses it.
    const std::int64_t position = std::min<std::int64_t>(first + static_cast<std::int64_t>(i), INT32_MAX);
    add(tokens[i], static_cast<Position>(position), {sequence}, i + 1 == tokens.size());
  }
}

void Batch::set_token(std::size_t i, Token token) {
  check(i);
  tokens_[i] = token;
}
void Batch::set_position(std::size_t i, Position position) {
  check(i);
  positions_[i] = position;
}
void Batch::set_sequences(std::size_t i, std::span<const SequenceId> sequences) {
  guarded([&] {
    check(i);
    std::vector<SequenceId> all(sequences_.begin(),
                                sequences_.begin() + static_cast<std::ptrdiff_t>(sequences_begin(i)));
    all.insert(all.end(), sequences.begin(), sequences.end());
    all.insert(all.end(), sequences_.begin() + static_cast<std::ptrdiff_t>(sequence_ends_[i]),
               sequences_.end());
    const std::size_t before = sequence_ends_[i] - sequences_begin(i);
    for (std::size_t later = i; later < size(); ++later) sequence_ends_[later] += sequences.size() - before;
    sequences_ = std::move(all);
  });
}
void Batch::set_output(std::size_t i, bool output) {
  check(i);
  outputs_[i] = output ? 1 : 0;
}

void Batch::clear() noexcept {
  tokens_.clear();
  embeddings_.clear();
  embedding_width_ = 0;
  positions_.clear();
  sequences_.clear();
  sequence_ends_.clear();
  outputs_.clear();
}

Token Batch::token(std::size_t i) const {
  check(i);
  return tokens_[i];
}
std::span<const float> Batch::embedding(std::size_t i) const {
  check(i);
  if (tokens_[i] != kNoToken || embedding_width_ == 0) return {};
  return std::span(embeddings_).subspan(i * embedding_width_, embedding_width_);
}
Position Batch::position(std::size_t i) const {
  check(i);
  return positions_[i];
}
std::span<const SequenceId> Batch::sequences(std::size_t i) const {
  check(i);
  return std::span(sequences_).subspan(sequences_begin(i), sequence_ends_[i] - sequences_begin(i));
}
bool Batch::output(std::size_t i) const {
  check(i);
  return outputs_[i] != 0;
}

}  // namespace quipu
