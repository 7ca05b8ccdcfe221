// Both directions of the byte alphabet, as tables made at first use.
#include "vocab/byte_alphabet.h"

#include <array>

#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

constexpr bool is_printable_latin1(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<std::int16_t, 256 + 68> bytes{};  // by code point; -1: not in the alphabet

  Alphabet() {
    bytes.fill(-1);
    std::uint32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::uint32_t code_point = is_printable_latin1(byte) ? byte : next++;
      append_utf8(characters[byte], code_point);
      bytes[code_point] = static_cast<std::int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet table;
  return table;
}

}  // namespace

std::string_view character_of_byte(std::uint8_t byte) {
  return alphabet().characters[byte];
}

namespace {

// Appends the byte that the character stands for; false if it is not in the alphabet.
bool append_byte(const Utf8Prefix& character, std::string& out) {
  const auto& bytes = alphabet().bytes;
  if (character.state != Utf8Prefix::State::complete || character.code_point >= bytes.size()) return false;
  const std::int16_t byte = bytes[character.code_point];
  if (byte < 0) return false;
  out.push_back(static_cast<char>(byte));
  return true;
}

}  // namespace

bool append_bytes_of_text(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const Utf8Prefix character = first_character(text);
    if (!append_byte(character, out)) return false;
    text.remove_prefix(character.length);
  }
  return true;
}

std::string bytes_of_text_leniently(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Prefix character = first_character(text);
    if (!append_byte(character, bytes)) bytes.append(text.substr(0, character.length));
    text.remove_prefix(character.length);
  }
  return bytes;
}

}  // namespace quipu::vocab
