// Python's two ways to format strings: "%s" % value, and "{}".format(value).
#pragma once

#include "chat/jinja/interpreter.h"

namespace quipu::jinja {

// With `safe`, what is filled in is escaped for HTML unless it is safe itself, and so is the result.

/// `values`: a tuple, a dictionary for %(name)s, or a single value.
Value percent_format(Interpreter& vm, TextView format, const Value& values, bool safe);
Value brace_format(Interpreter& vm, TextView format, const Arguments& arguments, bool safe);

}  // namespace quipu::jinja
