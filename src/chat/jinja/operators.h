// Arithmetic, repetition and containment, as Python has them.
#pragma once

#include "chat/jinja/interpreter.h"

namespace quipu::jinja {

Value binary(Interpreter& vm, Binary::Op op, const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);
/// needle in haystack
bool contains(Interpreter& vm, const Value& haystack, const Value& needle);
/// For searches: the work of finding `needle` characters in `text` characters.
void pay_for_search(Budget& budget, std::size_t text, std::size_t needle);

}  // namespace quipu::jinja
