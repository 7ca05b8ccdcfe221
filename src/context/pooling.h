// One vector for a sequence from the embeddings of its tokens. Rows come in the order of the tokens, in any
// number of micro-batches, so that the result has the same bits however a batch is divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/hparams.h"
#include "quipu/types.h"

namespace quipu {

std::string_view name_of(Pooling pooling);

/// The vectors of the sequences of one batch. For `none` nothing is kept; `rank` is pooled otherwise first.
class PooledRows {
 public:
  PooledRows(Pooling pooling, std::size_t n_sequences, std::size_t width);

  /// Forgets the last batch and makes room for these sequences. Error(out_of_memory).
  void begin(std::span<const SequenceId> sequences);
  /// The embedding of the next token of a sequence.
  void add(SequenceId sequence, std::span<const float> row);
  /// All rows have come.
  void finish();
  void clear();

  /// Those that have a vector, ascending.
  std::vector<SequenceId> sequences() const;
  /// [width]. Error(invalid_argument) where the last batch had no token of the sequence.
  std::span<const float> at(SequenceId sequence) const;
  std::size_t bytes() const;

 private:
  struct Vector {
    std::size_t n_tokens = 0;
    std::vector<double> sum;  // of `mean`
    std::vector<float> row;
  };

  Pooling pooling_;
  std::size_t width_;
  std::vector<Vector> vectors_;  // by sequence
  bool finished_ = false;
};

}  // namespace quipu
