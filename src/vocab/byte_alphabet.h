// The alphabet of byte-level vocabularies: each byte is written as one printable character (GPT-2's mapping).
// Bytes that are printable in Latin-1 stand for themselves, the other 68 are U+0100 upwards in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quipu::vocab {

/// The character for a byte, in UTF-8.
std::string_view character_of_byte(std::uint8_t byte);

/// Appends the bytes that a text in this alphabet stands for; false if it has another character, after which
/// `out` holds what came before.
bool append_bytes_of_text(std::string_view text, std::string& out);

/// The bytes of a text in which characters outside the alphabet stand for themselves.
std::string bytes_of_text_leniently(std::string_view text);

}  // namespace quipu::vocab
