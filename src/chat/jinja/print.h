// Values as text: str(), repr() and JSON, as Python writes them. All of it is paid for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja/interpreter.h"

namespace quipu::jinja {

/// What print statements and `~` write.
void append_str(Interpreter& vm, Text& out, const Value& value);
/// As inside lists.
void append_repr(Interpreter& vm, Text& out, const Value& value);
/// "1.0", "1e+16", "inf"
std::string float_repr(double value);

struct JsonOptions {
  bool ensure_ascii = false;
  std::optional<Text> indent = std::nullopt;  ///< of one level; without it everything is on one line
  Text item_separator = U", ";
  Text key_separator = U": ";
  bool sort_keys = false;
};
/// TypeError for what JSON has no form for.
void append_json(Interpreter& vm, Text& out, const Value& value, const JsonOptions& options);

}  // namespace quipu::jinja
