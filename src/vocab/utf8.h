// UTF-8, strict and lenient. Text comes from anywhere: nothing here assumes that it is valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quipu::vocab {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

/// Bytes of the character that `lead` begins, by its high bits alone; 1 for a byte that begins none.
constexpr std::size_t length_by_lead_byte(char lead) {
  const auto byte = static_cast<std::uint8_t>(lead);
  if (byte < 0xC0) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

constexpr bool is_continuation(char byte) {
  return (static_cast<std::uint8_t>(byte) & 0xC0) == 0x80;
}

/// Appends the code point (at most 0x1FFFFF; surrogates are encoded like any other).
void append_utf8(std::string& out, std::uint32_t code_point);

/// The text as byte-level vocabularies see it: a byte that begins no complete sequence becomes U+FFFD;
/// overlong forms become their shortest, surrogates stay, and what exceeds U+10FFFF becomes one U+FFFD.
/// Returns `text` itself where nothing changes; else the result is kept in `storage`.
std::string_view repair_utf8(std::string_view text, std::string& storage);

/// Bytes of the sequence that `text` (not empty) begins with, judged by lead and continuation bytes alone;
/// 0 if its first byte begins none.
std::size_t sequence_length(std::string_view text);

/// Takes the first character off a text that repair_utf8 gave, not empty.
struct Character {
  std::uint32_t code_point = 0;
  std::size_t length = 0;
};
Character take_character(std::string_view& repaired);

/// What can be said of the first character of `text` (not empty) under the strict rules of Unicode,
/// chapter 3.9.
struct Utf8Prefix {
  enum class State { complete, invalid, incomplete };
  State state = State::complete;
  std::size_t length =
      0;  ///< complete: of the character; invalid: of the maximal subpart; incomplete: all of it
  std::uint32_t code_point = 0;
};
Utf8Prefix first_character(std::string_view text);

/// Makes valid UTF-8 out of bytes that come in pieces cut anywhere. A character is given out when it is
/// complete; each maximal invalid subpart becomes U+FFFD.
class Utf8Stream {
 public:
  /// What `bytes` completes.
  std::string push(std::string_view bytes);
  /// The end: an unfinished character becomes U+FFFD. Ready for another stream afterwards.
  std::string finish();

 private:
  std::string pending_;  // the beginning of one character
};

}  // namespace quipu::vocab
