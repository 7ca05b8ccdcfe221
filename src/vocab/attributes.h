// Attributes of a token: a set of bits. The values are those that tools of this field print and exchange.
#pragma once

#include <cstdint>

namespace quipu {

enum class TokenAttribute : std::uint16_t {
  unknown = 1,
  unused = 2,
  normal = 4,
  control = 8,        ///< steers the model; recognized in text only on request, shown only on request
  user_defined = 16,  ///< recognized in all text before anything else
  byte = 32,          ///< stands for one byte, text "<0xHH>"
  normalized = 64,
  lstrip = 128,  ///< white space on the left belongs to it
  rstrip = 256,  ///< white space on the right belongs to it
  single_word = 512,
};

class TokenAttributes {
 public:
  constexpr TokenAttributes() = default;
  constexpr TokenAttributes(TokenAttribute attribute) : bits_(static_cast<std::uint16_t>(attribute)) {}

  constexpr std::uint16_t bits() const { return bits_; }
  /// Whether it has at least one of those.
  constexpr bool any(TokenAttributes others) const { return (bits_ & others.bits_) != 0; }

  constexpr TokenAttributes operator|(TokenAttributes other) const { return from_bits(bits_ | other.bits_); }
  constexpr TokenAttributes without(TokenAttributes other) const { return from_bits(bits_ & ~other.bits_); }
  constexpr bool operator==(const TokenAttributes&) const = default;

 private:
  static constexpr TokenAttributes from_bits(int bits) {
    TokenAttributes result;
    result.bits_ = static_cast<std::uint16_t>(bits);
    return result;
  }

  std::uint16_t bits_ = 0;
};

constexpr TokenAttributes operator|(TokenAttribute a, TokenAttribute b) {
  return TokenAttributes(a) | TokenAttributes(b);
}

}  // namespace quipu
