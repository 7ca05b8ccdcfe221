// The words of a template.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/value.h"

namespace quipu::jinja {

struct Token {
  enum class Type {
    data,  ///< text between tags: in `value`
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    number,
    op,
    end,
  };
  Type type = Type::end;
  std::uint32_t at = 0;   ///< byte of the source
  std::string_view text;  ///< as it stands there
  Value value;            ///< of data, strings and numbers
};

/// Divides a template, of which the line breaks are "\n" already; the source must outlive the tokens. Text
/// between tags is trimmed as trim_blocks and lstrip_blocks of the reference do, and comments are left out.
/// Throws SyntaxError.
std::vector<Token> tokenize(std::string_view source);

/// A fault of the template's text.
struct SyntaxError {
  std::uint32_t at = 0;
  std::string message;
};

}  // namespace quipu::jinja
