// JSON text as values.
#pragma once

#include <string_view>

#include "chat/jinja/value.h"

namespace quipu::jinja {

/// Objects keep the order of their keys; strings carry the mark of input. Error(invalid_argument) naming
/// `what` for text that is no JSON, is nested more than `limits.value_depth` deep, or has an integer of over
/// 38 digits.
Value parse_json(std::string_view json, std::string_view what, const Limits& limits = {});

}  // namespace quipu::jinja
