#include "chat/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "chat/jinja/format.h"
#include "chat/jinja/strings.h"

namespace quipu::jinja {

namespace {

const char* symbol(Binary::Op op) {
  switch (op) {
    case Binary::Op::add: return "+";
    case Binary::Op::subtract: return "-";
    case Binary::Op::multiply: return "*";
    case Binary::Op::divide: return "/";
    case Binary::Op::floor_divide: return "//";
    case Binary::Op::modulo: return "%";
    case Binary::Op::power: return "** or pow()";
  }
  return "";
}

[[noreturn]] void unsupported(Binary::Op op, const Value& left, const Value& right) {
  fail(ErrorCode::invalid_argument, "unsupported operand type(s) for {}: '{}' and '{}'", symbol(op),
       type_name(left), type_name(right));
}

[[noreturn]] void too_large() {
  fail(ErrorCode::invalid_argument, "the integer is too large");
}
Int sum(Int a, Int b) {
  Int result = 0;
  if (__builtin_add_overflow(a, b, &result)) too_large();
  return result;
}
Int difference(Int a, Int b) {
  Int result = 0;
  if (__builtin_sub_overflow(a, b, &result)) too_large();
  return result;
}
Int product(Int a, Int b) {
  Int result = 0;
  if (__builtin_mul_overflow(a, b, &result)) too_large();
  return result;
}

Int floor_divide(Int a, Int b) {
  if (b == 0) fail(ErrorCode::invalid_argument, "integer division or modulo by zero");
  if (b == -1) return difference(0, a);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

Int integer_power(Int base, Int exponent) {
  Int result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0) result = product(result, base);
    exponent >>= 1;
    if (exponent > 0) base = product(base, base);
  }
  return result;
}

double float_power(double base, double exponent) {
  if (base >= 0) {
    if (base == 0 && exponent < 0) {
      fail(ErrorCode::invalid_argument, "0.0 cannot be raised to a negative power");
    }
    return exact_math::pow(base, exponent);
  }
  if (std::floor(exponent) != exponent) {
    fail(ErrorCode::invalid_argument, "a negative number cannot be raised to a fraction");
  }
  const double magnitude = exact_math::pow(-base, exponent);
  return std::fmod(exponent, 2) != 0 ? -magnitude : magnitude;
}

double float_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest == 0 ? std::copysign(0.0, b) : rest;
}

Value integers(Binary::Op op, Int a, Int b) {
  switch (op) {
    case Binary::Op::add: return Value::integer(sum(a, b));
    case Binary::Op::subtract: return Value::integer(difference(a, b));
    case Binary::Op::multiply: return Value::integer(product(a, b));
    case Binary::Op::divide:
      if (b == 0) fail(ErrorCode::invalid_argument, "division by zero");
      return Value::Data(static_cast<double>(a) / static_cast<double>(b));
    case Binary::Op::floor_divide: return Value::integer(floor_divide(a, b));
    case Binary::Op::modulo: return Value::integer(b == -1 ? 0 : a - floor_divide(a, b) * b);
    case Binary::Op::power: break;
  }
  if (b < 0) return Value::Data(float_power(static_cast<double>(a), static_cast<double>(b)));
  return Value::integer(integer_power(a, b));
}

Value floats(Binary::Op op, double a, double b) {
  const bool divides = op == Binary::Op::divide || op == Binary::Op::floor_divide || op == Binary::Op::modulo;
  if (divides && b == 0) fail(ErrorCode::invalid_argument, "float division by zero");
  switch (op) {
    case Binary::Op::add: return Value::Data(a + b);
    case Binary::Op::subtract: return Value::Data(a - b);
    case Binary::Op::multiply: return Value::Data(a * b);
    case Binary::Op::divide: return Value::Data(a / b);
    case Binary::Op::floor_divide: return Value::Data(std::floor((a - float_modulo(a, b)) / b + 0.5));
    case Binary::Op::modulo: return Value::Data(float_modulo(a, b));
    case Binary::Op::power: break;
  }
  return Value::Data(float_power(a, b));
}

Value concatenated(Interpreter& vm, const Sequence& a, const Sequence& b) {
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return make_sequence(vm.budget(), std::move(items),
                       a.type == Sequence::Type::list ? a.type : Sequence::Type::tuple);
}

Value repeated(Interpreter& vm, const Value& value, Int times) {
  const Text* text = value.as_text();
  const Sequence* list = value.as_list();
  const std::size_t length = text != nullptr ? text->size() : list->items.size();
  if (times < 0 || length == 0) times = 0;
  constexpr Int kMost = 1 << 30;
  const auto n = static_cast<std::size_t>(std::min(times, kMost));
  vm.budget().bytes(n * length *
                    (text != nullptr ? sizeof(Char) : sizeof(Value)));  // before there is anything
  if (text != nullptr) {
    Text result;
    result.reserve(n * length);
    for (std::size_t i = 0; i < n; ++i) result += *text;
    return vm.text(std::move(result), value.is_safe());
  }
  std::vector<Value> items;
  items.reserve(n * length);
  for (std::size_t i = 0; i < n; ++i) items.insert(items.end(), list->items.begin(), list->items.end());
  return make_sequence(vm.budget(), std::move(items), list->type);
}

/// A safe string makes the other one safe by escapes.
Value joined(Interpreter& vm, const Value& left, const Value& right) {
  const bool safe = left.is_safe() || right.is_safe();
  Text result = safe && !left.is_safe() ? html_escaped(*left.as_text()) : *left.as_text();
  result += safe && !right.is_safe() ? html_escaped(*right.as_text()) : *right.as_text();
  return vm.text(std::move(result), safe);
}

Value add(Interpreter& vm, const Value& left, const Value& right) {
  const Text* text = left.as_text();
  if (text != nullptr && right.as_text() != nullptr) return joined(vm, left, right);
  const Sequence* list = left.as_list();
  const Sequence* other = right.as_list();
  if (list != nullptr && other != nullptr &&
      (list->type == Sequence::Type::list) == (other->type == Sequence::Type::list)) {
    return concatenated(vm, *list, *other);
  }
  if (text != nullptr || list != nullptr) {
    fail(ErrorCode::invalid_argument, "can only concatenate {0} (not \"{1}\") to {0}", type_name(left),
         type_name(right));
  }
  unsupported(Binary::Op::add, left, right);
}

}  // namespace

Value binary(Interpreter& vm, Binary::Op op, const Value& left, const Value& right) {
  Int i = 0, j = 0;
  if (left.get_int(i) && right.get_int(j)) return integers(op, i, j);
  double x = 0, y = 0;
  if (left.get_number(x) && right.get_number(y)) return floats(op, x, y);
  if (op == Binary::Op::modulo && left.as_text() != nullptr)
    return percent_format(vm, *left.as_text(), right, left.is_safe());
  require_defined(left);
  require_defined(right);
  if (op == Binary::Op::add) return add(vm, left, right);
  if (op == Binary::Op::multiply) {
    if ((left.as_text() != nullptr || left.as_list() != nullptr) && right.get_int(j))
      return repeated(vm, left, j);
    if ((right.as_text() != nullptr || right.as_list() != nullptr) && left.get_int(i))
      return repeated(vm, right, i);
  }
  unsupported(op, left, right);
}

Value negative(const Value& value) {
  require_defined(value);
  Int i = 0;
  if (value.get_int(i)) return Value::integer(difference(0, i));
  double x = 0;
  if (value.get_number(x)) return Value::Data(-x);
  fail(ErrorCode::invalid_argument, "bad operand type for unary -: '{}'", type_name(value));
}

Value positive(const Value& value) {
  require_defined(value);
  Int i = 0;
  if (value.get_int(i)) return Value::integer(i);
  if (value.get_if<double>() != nullptr) return value;
  fail(ErrorCode::invalid_argument, "bad operand type for unary +: '{}'", type_name(value));
}

void pay_for_search(Budget& budget, std::size_t text, std::size_t needle) {
  budget.steps(1 + text / 32 * (1 + needle / 8));
}

bool contains(Interpreter& vm, const Value& haystack, const Value& needle) {
  if (const Text* text = haystack.as_text()) {
    require_defined(needle);
    const Text* part = needle.as_text();
    if (part == nullptr) {
      fail(ErrorCode::invalid_argument, "'in <string>' requires string as left operand, not {}",
           type_name(needle));
    }
    pay_for_search(vm.budget(), text->size(), part->size());
    return find(*text, *part) != TextView::npos;
  }
  if (const Dict* dict = haystack.as_dict()) {
    require_hashable(needle);
    return dict->find(vm.budget(), needle) != nullptr;
  }
  if (!Elements::possible(haystack)) {
    fail(ErrorCode::invalid_argument, "argument of type '{}' is not iterable", type_name(haystack));
  }
  const Elements elements(vm.budget(), haystack);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (equal(vm.budget(), elements[i], needle)) return true;
  }
  return false;
}

}  // namespace quipu::jinja
