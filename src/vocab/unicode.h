// What WordPiece asks about characters (Unicode 15, from utf8proc).
#pragma once

#include <cstdint>

namespace quipu::vocab {

enum class CharacterKind { letter, mark, number, punctuation, symbol, space, control, other };

/// Space is what has the property White_Space; control is categories Cc, Cf, Co and Cs but for that.
CharacterKind kind_of(std::uint32_t code_point);
std::uint32_t to_lower(std::uint32_t code_point);
/// The first character of its canonical decomposition: the letter without its accents.
std::uint32_t without_accents(std::uint32_t code_point);

}  // namespace quipu::vocab
