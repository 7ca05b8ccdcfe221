// Filters of numbers, and of values of any kind.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/jinja/access.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/operators.h"

namespace quipu::jinja {

namespace {

// Numbers.

Value f_abs(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters("abs", arguments).end();
  require_defined(input);
  double x = 0;
  Int i = 0;
  if (input.get_int(i)) return i < 0 ? negative(input) : positive(input);
  if (!input.get_number(x))
    fail(ErrorCode::invalid_argument, "bad operand type for abs(): '{}'", type_name(input));
  return Value::Data(std::abs(x));
}

/// float(text); nothing if it is none.
std::optional<double> parse_float(TextView text) {
  std::string digits;
  for (const Char c : strip(text, nullptr, true, true)) {
    if (plain(c) >= 0x80 || digits.size() > 400) return std::nullopt;
    if (plain(c) != '_') digits.push_back(static_cast<char>(plain(c)));
  }
  std::string_view rest = digits;
  if (rest.starts_with('+') && !rest.starts_with("+-")) rest.remove_prefix(1);
  return parse_decimal(rest);
}

std::optional<Int> parse_integer(TextView text, std::int64_t base) {
  std::string digits;
  for (const Char c : strip(text, nullptr, true, true)) {
    if (plain(c) >= 0x80 || digits.size() > 200) return std::nullopt;
    digits.push_back(static_cast<char>(plain(c)));
  }
  std::string_view rest = digits;
  const bool negative_sign = rest.starts_with('-');
  if (negative_sign || rest.starts_with('+')) rest.remove_prefix(1);
  const auto prefixed = [&](char lower_letter, std::int64_t of_base) {
    const bool is = rest.size() > 2 && rest[0] == '0' && (rest[1] | 0x20) == lower_letter &&
                    (base == of_base || base == 0);
    if (is) {
      rest.remove_prefix(2);
      base = of_base;
    }
    return is;
  };
  if (!prefixed('x', 16) && !prefixed('o', 8)) prefixed('b', 2);
  if (base == 0) base = 10;
  if (rest.empty() || base < 2 || base > 36 || rest.front() == '_' || rest.back() == '_') return std::nullopt;
  Int value = 0;
  for (const char c : rest) {
    if (c == '_') continue;
    const int digit = c >= '0' && c <= '9'                     ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                               : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, Int(base), &value) ||
        __builtin_add_overflow(value, Int(digit), &value)) {
      fail(ErrorCode::invalid_argument, "the integer is too large");
    }
  }
  return negative_sign ? -value : value;
}

std::optional<Int> truncated(double x) {
  constexpr double kLimit = 1e38;
  if (!(std::abs(x) < kLimit)) return std::nullopt;
  return static_cast<Int>(x);
}

Value f_int(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("int", arguments);
  const Value* usual = parameters.optional("default");
  const std::int64_t base = parameters.integer_or("base", 10);
  parameters.end();
  require_defined(input);
  std::optional<Int> result;
  Int i = 0;
  if (const Text* text = input.as_text()) {
    result = parse_integer(*text, base);
    if (!result) {
      if (const std::optional<double> x = parse_float(*text)) result = truncated(*x);
    }
  } else if (input.get_int(i)) {
    result = i;
  } else if (const double* x = input.get_if<double>()) {
    result = truncated(*x);
  }
  if (result) return Value::integer(*result);
  return usual == nullptr ? Value::integer(0) : *usual;
}
Value f_float(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("float", arguments);
  const Value* usual = parameters.optional("default");
  parameters.end();
  require_defined(input);
  double x = 0;
  if (input.get_number(x)) return Value::Data(x);
  if (const Text* text = input.as_text()) {
    if (const std::optional<double> parsed = parse_float(*text)) return Value::Data(*parsed);
  }
  return usual == nullptr ? Value::Data(0.0) : *usual;
}
Value f_round(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("round", arguments);
  const std::int64_t precision = std::clamp<std::int64_t>(parameters.integer_or("precision", 0), -300, 300);
  const Text* method = parameters.optional_text("method");
  parameters.end();
  require_defined(input);
  double x = 0;
  Int i = 0;
  if (!input.get_number(x)) {
    fail(ErrorCode::invalid_argument, "type {} doesn't define __round__ method", type_name(input));
  }
  const bool common = method == nullptr || equal(*method, "common");
  if (common && input.get_int(i) && precision >= 0) return Value::integer(i);
  const double scale = std::stod(fmt::format("1e{}", precision));
  if (common) {
    if (!std::isfinite(x)) return Value::Data(x);
    const double rounded = precision >= 0 ? std::stod(fmt::format("{:.{}f}", x, static_cast<int>(precision)))
                                          : std::nearbyint(x * scale) / scale;
    return input.get_int(i) ? Value::integer(static_cast<Int>(rounded)) : Value::Data(rounded);
  }
  if (equal(*method, "ceil")) return Value::Data(std::ceil(x * scale) / scale);
  if (equal(*method, "floor")) return Value::Data(std::floor(x * scale) / scale);
  fail(ErrorCode::invalid_argument, "method must be common, ceil or floor");
}

// Values of any kind.

Value f_default(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("default", arguments);
  const Value* usual = parameters.optional("default_value");
  const bool boolean = parameters.flag_or("boolean", false);
  parameters.end();
  if (!input.is_undefined() && !(boolean && !truthy(input))) return input;
  return usual == nullptr ? Value::text(Text()) : *usual;
}
Value f_attr(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("attr", arguments);
  const Text& name = parameters.text("name");
  parameters.end();
  require_defined(input);
  const bool has_keys = input.as_dict() != nullptr;
  if (std::optional<Value> own = method(input, bytes_of(name)); own || has_keys) {
    return own ? *std::move(own)
               : Value::undefined(fmt::format("'dict object' has no attribute '{}'", bytes_of(name)));
  }
  return attribute(vm, input, bytes_of(name));
}
Value f_length(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters("length", arguments).end();
  std::size_t length = 0;
  if (!length_of(input, length)) {
    fail(ErrorCode::invalid_argument, "object of type '{}' has no len()", type_name(input));
  }
  return Value::integer(static_cast<Int>(length));
}

constexpr FilterRow kRows[] = {
    {"abs", f_abs},     {"attr", f_attr}, {"count", f_length},  {"d", f_default},   {"default", f_default},
    {"float", f_float}, {"int", f_int},   {"length", f_length}, {"round", f_round},
};

}  // namespace

std::span<const FilterRow> value_filters() {
  return kRows;
}

}  // namespace quipu::jinja
