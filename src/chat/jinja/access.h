// Attributes, subscripts and slices.
#pragma once

#include <string_view>

#include "chat/jinja/interpreter.h"

namespace quipu::jinja {

/// object.name: methods before keys. Undefined if there is neither.
Value attribute(Interpreter& vm, const Value& object, std::string_view name);
/// object[key]: keys before methods.
Value subscript(Interpreter& vm, const Value& object, const Value& key);
/// object[start:stop:step]; none where nothing was written.
Value slice(Interpreter& vm, const Value& object, const Value& start, const Value& stop, const Value& step);
/// "a.0.b", or an integer, step by step as subscripts; undefined values become `usual` if there is one.
Value path(Interpreter& vm, Value object, const Value& path, const Value* usual = nullptr);

}  // namespace quipu::jinja
