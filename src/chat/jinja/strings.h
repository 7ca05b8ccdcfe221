// What methods and filters of strings share.
#pragma once

#include "chat/jinja/interpreter.h"

namespace quipu::jinja {

/// A negative `count`: all of them. An empty `old` stands before every character and at the end.
Text replaced(Interpreter& vm, TextView text, TextView old, TextView fresh, std::int64_t count);
/// Filled up to `width`; centred as Python does it, where the odd character goes by the widths.
Text justified(Interpreter& vm, TextView text, std::int64_t width, Char fill, bool right, bool center);
/// With HTML's five special characters as entities.
Text html_escaped(TextView text);
/// Whether there is a letter of that case and none of another.
bool has_case(TextView text, bool upper);

}  // namespace quipu::jinja
