// Arithmetic on sizes that come from outside: a result that does not fit is reported, never wrapped.
#pragma once

#include <concepts>
#include <optional>

namespace quipu {

template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// Smallest multiple of `multiple` (> 0) that is at least `value`; nothing if it does not fit.
template <std::unsigned_integral T>
constexpr std::optional<T> checked_round_up(T value, T multiple) {
  const T rest = value % multiple;
  return rest == 0 ? std::optional<T>(value) : checked_add<T>(value, multiple - rest);
}

/// As above for figures of Quipu's own that are known to fit.
template <std::integral T>
constexpr T round_up(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

template <std::integral T>
constexpr T ceil_div(T value, T divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace quipu
