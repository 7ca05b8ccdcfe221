// The table of the methods of strings.
#pragma once

#include <string_view>

#include "chat/jinja/interpreter.h"

namespace quipu::jinja {

struct StringMethodRow {
  std::string_view name;
  Value (*method)(Interpreter& vm, const Text& self, Arguments& arguments);
};

/// Null for a name that is not in the table.
const StringMethodRow* find_string_method(std::string_view name);

}  // namespace quipu::jinja
