#include "backend/cpu/work_shares.h"

#include <algorithm>
#include <bit>

namespace quipu::cpu {
namespace {

/// Each piece is half of what is left of its share: few, since a kernel works best on long ranges, and the
/// last ones short, so that threads come to a phase's end together.
constexpr int kMostPieces = 6;

std::uint32_t n_pieces(const UnitRange& share) {
  return static_cast<std::uint32_t>(std::min<int>(std::bit_width(share.end - share.begin), kMostPieces));
}

/// Where piece number `index` of `n` begins in a share of `length`.
std::size_t piece_begin(std::size_t length, std::uint32_t index, std::uint32_t n) {
  return index == n ? length : length - (length >> index);
}

}  // namespace

WorkShares::WorkShares(std::size_t n_chains, unsigned max_threads)
    : max_threads_(max_threads), n_units_(n_chains), taken_(n_chains * max_threads) {}

void WorkShares::start(unsigned n_threads) {
  n_threads_ = n_threads;
  ++run_;
  done_.reset();
}

UnitRange WorkShares::share(std::size_t chain, unsigned owner) const {
  const std::size_t n = n_units_[chain];
  return {n * owner / n_threads_, n * (owner + 1) / n_threads_};
}

std::uint32_t WorkShares::set_units(std::size_t chain, std::size_t n_units) {
  n_units_[chain] = n_units;
  std::uint32_t pieces = 0;
  for (unsigned owner = 0; owner < n_threads_; ++owner) pieces += n_pieces(share(chain, owner));
  return pieces;
}

std::optional<UnitRange> WorkShares::claim(std::size_t chain, unsigned owner) {
  const UnitRange range = share(chain, owner);
  const std::uint32_t n = n_pieces(range);
  std::atomic<std::uint64_t>& taken = taken_[chain * max_threads_ + owner].run_and_count;
  std::uint64_t seen = taken.load(std::memory_order_relaxed);
  std::uint32_t piece = 0;
  do {
    piece = static_cast<std::uint32_t>(seen >> 32) == run_ ? static_cast<std::uint32_t>(seen) : 0;
    if (piece >= n) return std::nullopt;
  } while (
      !taken.compare_exchange_weak(seen, std::uint64_t{run_} << 32 | (piece + 1), std::memory_order_relaxed));
  const std::size_t length = range.end - range.begin;
  return UnitRange{range.begin + piece_begin(length, piece, n),
                   range.begin + piece_begin(length, piece + 1, n)};
}

}  // namespace quipu::cpu
