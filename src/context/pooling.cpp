#include "context/pooling.h"

#include <algorithm>

#include "base/error.h"

namespace quipu {

std::string_view name_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::none: return "none";
    case Pooling::mean: return "mean";
    case Pooling::first: return "first";
    case Pooling::last: return "last";
    case Pooling::rank: return "rank";
  }
  return "?";
}

PooledRows::PooledRows(Pooling pooling, std::size_t n_sequences, std::size_t width)
    : pooling_(pooling), width_(width), vectors_(pooling == Pooling::none ? 0 : n_sequences) {}

void PooledRows::begin(std::span<const SequenceId> sequences) {
  clear();
  if (vectors_.empty()) return;
  for (const SequenceId sequence : sequences) {
    Vector& vector = vectors_[static_cast<std::size_t>(sequence)];
    vector.row.resize(width_);
    if (pooling_ == Pooling::mean) vector.sum.assign(width_, 0.0);
  }
}

void PooledRows::add(SequenceId sequence, std::span<const float> row) {
  Vector& vector = vectors_[static_cast<std::size_t>(sequence)];
  if (pooling_ == Pooling::mean) {
    for (std::size_t i = 0; i < width_; ++i) vector.sum[i] += static_cast<double>(row[i]);
  } else if (pooling_ == Pooling::last || vector.n_tokens == 0) {
    std::copy(row.begin(), row.end(), vector.row.begin());
  }
  ++vector.n_tokens;
}

void PooledRows::finish() {
  finished_ = true;
  if (pooling_ != Pooling::mean) return;
  for (Vector& vector : vectors_) {
    if (vector.n_tokens == 0) continue;
    const auto n_tokens = static_cast<double>(vector.n_tokens);
    std::transform(vector.sum.begin(), vector.sum.end(), vector.row.begin(),
                   [&](double sum) { return static_cast<float>(sum / n_tokens); });
  }
}

void PooledRows::clear() {
  finished_ = false;
  for (Vector& vector : vectors_) vector.n_tokens = 0;
}

std::span<const float> PooledRows::at(SequenceId sequence) const {
  if (sequence < 0 || static_cast<std::size_t>(sequence) >= vectors_.size()) {
    fail(ErrorCode::invalid_argument, "embedding of sequence {}: {}", sequence,
         vectors_.empty() ? "nothing is pooled" : "there is no such sequence");
  }
  const Vector& vector = vectors_[static_cast<std::size_t>(sequence)];
  if (!finished_ || vector.n_tokens == 0)
    fail(ErrorCode::invalid_argument, "embedding of sequence {}: the last batch has none", sequence);
  return vector.row;
}

std::vector<SequenceId> PooledRows::sequences() const {
  std::vector<SequenceId> result;
  for (std::size_t s = 0; s < vectors_.size(); ++s) {
    if (vectors_[s].n_tokens > 0) result.push_back(static_cast<SequenceId>(s));
  }
  return result;
}

std::size_t PooledRows::bytes() const {
  std::size_t total = 0;
  for (const Vector& vector : vectors_) {
    total += vector.row.capacity() * sizeof(float) + vector.sum.capacity() * sizeof(double);
  }
  return total;
}

}  // namespace quipu
