// The generator behind seeded draws. Ours rather than the standard library's, whose distributions differ
// between implementations: a seed means the same tokens everywhere.
#pragma once

#include <array>
#include <cstdint>

namespace quipu::sampling {

/// xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2019), its state
/// filled from the seed by SplitMix64 as its authors advise.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  /// With the state as given; at least one word must differ from 0.
  explicit Random(const std::array<std::uint64_t, 4>& state);

  /// 64 uniform bits.
  std::uint64_t next();
  /// Uniform in [0, 1): the upper 53 bits of next() over 2^53.
  double uniform();

 private:
  std::array<std::uint64_t, 4> state_;
};

/// One step of SplitMix64 (Steele, Lea, Flood 2014); advances `state`.
std::uint64_t split_mix_64(std::uint64_t& state);

/// A seed from the system's source of randomness, for callers that named none. Under 2^32: short enough to
/// note down, and exact in JSON readers that know only doubles.
std::uint64_t random_seed();

}  // namespace quipu::sampling
