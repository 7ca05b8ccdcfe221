#include "context/outputs.h"

#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace quipu {

bool OutputRows::reserve(std::size_t n_tokens, std::span<const std::uint32_t> outputs, std::size_t n_rows) {
  const auto n_bytes = checked_mul(n_rows, row_elements_ * sizeof(float));
  if (!n_bytes) fail(ErrorCode::out_of_memory, "{} rows of {} do not fit the address space", n_rows, what_);
  const bool grows = *n_bytes > buffer_.size();
  AlignedBuffer larger(grows ? *n_bytes : 0);
  row_of_.reserve(n_tokens);
  outputs_.reserve(outputs.size());

  if (grows) buffer_ = std::move(larger);
  n_rows_ = 0;
  row_of_.assign(n_tokens, -1);
  outputs_.assign(outputs.begin(), outputs.end());
  return grows;
}

void OutputRows::clear() {
  n_rows_ = 0;
  row_of_.clear();
  outputs_.clear();
}

void OutputRows::add(std::size_t batch_index) {
  std::int32_t& row = row_of_[batch_index];
  if (row < 0) row = static_cast<std::int32_t>(n_rows_);
  ++n_rows_;
}

float* OutputRows::next() {
  return buffer_.as<float>().data() + n_rows_ * row_elements_;
}

std::span<const float> OutputRows::at(std::ptrdiff_t index) const {
  const auto n_outputs = static_cast<std::ptrdiff_t>(outputs_.size());
  if (index < 0 ? index < -n_outputs : index >= static_cast<std::ptrdiff_t>(row_of_.size())) {
    fail(ErrorCode::invalid_argument, "{} of token {}: the last batch has {} tokens and {} outputs of them",
         what_, index, row_of_.size(), n_outputs);
  }
  const std::size_t token =
      index < 0 ? outputs_[static_cast<std::size_t>(n_outputs + index)] : static_cast<std::size_t>(index);
  const std::int32_t row = row_of_[token];
  if (row < 0)
    fail(ErrorCode::invalid_argument, "{} of token {}: the batch did not ask for them", what_, index);
  return buffer_.as<float>().subspan(static_cast<std::size_t>(row) * row_elements_, row_elements_);
}

}  // namespace quipu
