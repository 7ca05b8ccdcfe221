// UTF-8 decoding. The lenient form follows what byte-level tokenizers of the field do with bad bytes, because
// ids must agree with theirs; the strict form is Unicode's.
#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

constexpr std::uint32_t kMaxCodePoint = 0x10FFFF;

struct Lenient {
  std::size_t length = 0;  // 0: the first byte begins no complete sequence
  std::uint32_t code_point = 0;
};

// Continuation bytes are checked; shortest form, surrogates and the upper limit are not.
Lenient decode_leniently(std::string_view text) {
  const auto lead = static_cast<std::uint8_t>(text[0]);
  if (lead < 0x80) return {1, lead};
  if (lead < 0xC0 || lead >= 0xF8) return {};
  const std::size_t length = length_by_lead_byte(text[0]);
  if (length > text.size()) return {};
  std::uint32_t code_point = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return {};
    code_point = (code_point << 6) | (static_cast<std::uint8_t>(text[i]) & 0x3Fu);
  }
  return {length, code_point};
}

std::size_t encoded_length(std::uint32_t code_point) {
  if (code_point < 0x80) return 1;
  if (code_point < 0x800) return 2;
  return code_point < 0x10000 ? 3 : 4;
}

bool stays_as_is(const Lenient& character) {
  return character.length != 0 && character.code_point <= kMaxCodePoint &&
         character.length == encoded_length(character.code_point);
}

}  // namespace

void append_utf8(std::string& out, std::uint32_t code_point) {
  const std::size_t length = encoded_length(code_point);
  if (length == 1) {
    out.push_back(static_cast<char>(code_point));
    return;
  }
  const std::uint32_t lead_bits = (0xF00u >> length) & 0xFFu;
  out.push_back(static_cast<char>(lead_bits | (code_point >> (6 * (length - 1)))));
  for (std::size_t i = length - 1; i-- > 0;) {
    out.push_back(static_cast<char>(0x80u | ((code_point >> (6 * i)) & 0x3Fu)));
  }
}

std::string_view repair_utf8(std::string_view text, std::string& storage) {
  std::size_t good = 0;
  while (good < text.size()) {
    const Lenient character = decode_leniently(text.substr(good));
    if (!stays_as_is(character)) break;
    good += character.length;
  }
  if (good == text.size()) return text;

  storage.assign(text.substr(0, good));
  for (std::size_t at = good; at < text.size();) {
    const Lenient character = decode_leniently(text.substr(at));
    if (character.length == 0 || character.code_point > kMaxCodePoint) {
      storage.append(kReplacementCharacter);
      at += character.length == 0 ? 1 : character.length;
    } else {
      append_utf8(storage, character.code_point);
      at += character.length;
    }
  }
  return storage;
}

std::size_t sequence_length(std::string_view text) {
  return decode_leniently(text).length;
}

Character take_character(std::string_view& repaired) {
  const Lenient character = decode_leniently(repaired);
  repaired.remove_prefix(character.length);
  return {character.code_point, character.length};
}

Utf8Prefix first_character(std::string_view text) {
  using enum Utf8Prefix::State;
  const auto lead = static_cast<std::uint8_t>(text[0]);
  if (lead < 0x80) return {complete, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {invalid, 1, 0};
  const std::size_t length = length_by_lead_byte(text[0]);
  std::uint32_t code_point = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {incomplete, i, 0};
    const auto byte = static_cast<std::uint8_t>(text[i]);
    // The second byte rules out overlong forms, surrogates and what exceeds U+10FFFF.
    const std::uint8_t low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte < low || byte > high) return {invalid, i, 0};
    code_point = (code_point << 6) | (byte & 0x3Fu);
  }
  return {complete, length, code_point};
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_.append(bytes);
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Prefix character = first_character(rest);
    if (character.state == Utf8Prefix::State::incomplete) break;
    out.append(character.state == Utf8Prefix::State::complete ? rest.substr(0, character.length)
                                                              : kReplacementCharacter);
    rest.remove_prefix(character.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return out;
}

std::string Utf8Stream::finish() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(kReplacementCharacter);
}

}  // namespace quipu::vocab
