#pragma once

#include <string_view>

#include "chat/jinja/ast.h"

namespace quipu::jinja {

/// Throws SyntaxError (token.h).
Program parse(std::string_view source);

}  // namespace quipu::jinja
