#include "sampling/random.h"

#include <bit>
#include <random>

#include "base/error.h"

namespace quipu::sampling {

std::uint64_t split_mix_64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Random::Random(std::uint64_t seed) : state_{} {
  for (std::uint64_t& word : state_) word = split_mix_64(seed);
}

Random::Random(const std::array<std::uint64_t, 4>& state) : state_(state) {
  QUIPU_CHECK((state[0] | state[1] | state[2] | state[3]) != 0);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

std::uint64_t random_seed() {
  return std::random_device()();
}

}  // namespace quipu::sampling
