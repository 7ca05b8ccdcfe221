// Rows of logits or embeddings that a batch asked for. The model's head writes straight into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"

namespace quipu {

class OutputRows {
 public:
  /// `what` they are ("logits"), for messages.
  OutputRows(std::string_view what, std::size_t row_elements) : what_(what), row_elements_(row_elements) {}

  /// Makes room for the outputs of a batch, given by ascending batch indices, with `n_rows` rows in all (a
  /// token may have several, of which the first counts); none has a row yet. True if the buffer had to grow.
  /// Error(out_of_memory) leaves everything as it was.
  bool reserve(std::size_t n_tokens, std::span<const std::uint32_t> outputs, std::size_t n_rows);
  /// There are no rows: a run failed, or none was done.
  void clear();
  /// Where the next row, in the order of computation, goes.
  float* next();
  /// The next row belongs to this token of the batch.
  void add(std::size_t batch_index);

  /// By index in the batch; a negative one counts from the last output. Error(invalid_argument) where there
  /// is no row.
  std::span<const float> at(std::ptrdiff_t index) const;
  std::size_t bytes() const { return buffer_.size(); }

 private:
  std::string_view what_;
  std::size_t row_elements_;
  AlignedBuffer buffer_;
  std::size_t n_rows_ = 0;
  std::vector<std::int32_t> row_of_;    // by batch index, -1: no row
  std::vector<std::uint32_t> outputs_;  // batch indices of the outputs, ascending
};

}  // namespace quipu
