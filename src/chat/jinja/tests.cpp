// Tests (`x is y`), by the reference's names.
#include <algorithm>

#include "chat/jinja/builtins.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/strings.h"

namespace quipu::jinja {

namespace {

template <bool (*kTest)(const Value&)>
bool plain_test(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters("test", arguments).end();
  return kTest(input);
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}
bool is_none(const Value& value) {
  return value.is_none();
}
bool is_boolean(const Value& value) {
  return value.get_if<bool>() != nullptr;
}
bool is_true(const Value& value) {
  return is_boolean(value) && *value.get_if<bool>();
}
bool is_false(const Value& value) {
  return is_boolean(value) && !*value.get_if<bool>();
}
bool is_integer(const Value& value) {
  return value.get_if<Int>() != nullptr;
}
bool is_float(const Value& value) {
  return value.get_if<double>() != nullptr;
}
bool is_number(const Value& value) {
  double x = 0;
  return value.get_number(x);
}
bool is_string(const Value& value) {
  return value.as_text() != nullptr;
}
bool is_mapping(const Value& value) {
  return value.as_dict() != nullptr;
}
bool is_iterable(const Value& value) {
  return Elements::possible(value);
}
bool is_sequence(const Value& value) {
  return value.is_undefined() || is_string(value) || value.as_list() != nullptr || is_mapping(value) ||
         value.get_if<Range>() != nullptr;
}
bool is_callable(const Value& value) {
  return value.is_undefined() || value.get_if<std::shared_ptr<const Callable>>() != nullptr ||
         value.get_if<const Macro*>() != nullptr || value.get_if<std::shared_ptr<Loop>>() != nullptr;
}
bool is_escaped(const Value& value) {
  return value.is_safe();
}

Value remainder(Interpreter& vm, const Value& input, const Value& divisor) {
  return binary(vm, Binary::Op::modulo, input, divisor);
}
bool t_divisibleby(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("divisibleby", arguments);
  const Value& divisor = parameters.required("num");
  parameters.end();
  return equal(vm.budget(), remainder(vm, input, divisor), Value::integer(0));
}
bool t_odd(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("odd", arguments).end();
  return equal(vm.budget(), remainder(vm, input, Value::integer(2)), Value::integer(1));
}
bool t_even(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("even", arguments).end();
  return equal(vm.budget(), remainder(vm, input, Value::integer(2)), Value::integer(0));
}
bool t_lower(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("lower", arguments).end();
  return has_case(as_str(vm, input), false);
}
bool t_upper(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("upper", arguments).end();
  return has_case(as_str(vm, input), true);
}
bool t_filter(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("filter", arguments).end();
  return find_filter(bytes_of(as_str(vm, input))) != nullptr;
}
bool t_test(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("test", arguments).end();
  return find_test(bytes_of(as_str(vm, input))) != nullptr;
}
bool t_sameas(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("sameas", arguments);
  const Value& other = parameters.required("other");
  parameters.end();
  return input.data().index() == other.data().index() && equal(vm.budget(), input, other);
}
bool t_in(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("in", arguments);
  const Value& haystack = parameters.required("seq");
  parameters.end();
  return contains(vm, haystack, input);
}
bool t_eq(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("eq", arguments);
  const Value& other = parameters.required("other");
  parameters.end();
  return equal(vm.budget(), input, other);
}
bool t_ne(Interpreter& vm, const Value& input, Arguments& arguments) {
  return !t_eq(vm, input, arguments);
}

int order_of(Interpreter& vm, const Value& input, Arguments& arguments, std::string_view op) {
  Parameters parameters(op, arguments);
  const Value& other = parameters.required("other");
  parameters.end();
  return compare(vm.budget(), input, other, op);
}
bool t_lt(Interpreter& vm, const Value& input, Arguments& arguments) {
  return order_of(vm, input, arguments, "<") == -1;
}
bool t_le(Interpreter& vm, const Value& input, Arguments& arguments) {
  return order_of(vm, input, arguments, "<=") <= 0;
}
bool t_gt(Interpreter& vm, const Value& input, Arguments& arguments) {
  return order_of(vm, input, arguments, ">") == 1;
}
bool t_ge(Interpreter& vm, const Value& input, Arguments& arguments) {
  const int order = order_of(vm, input, arguments, ">=");
  return order == 0 || order == 1;
}

struct TestRow {
  std::string_view name;
  Test test;
};
constexpr TestRow kTests[] = {
    {"!=", t_ne},
    {"<", t_lt},
    {"<=", t_le},
    {"==", t_eq},
    {">", t_gt},
    {">=", t_ge},
    {"boolean", plain_test<is_boolean>},
    {"callable", plain_test<is_callable>},
    {"defined", plain_test<is_defined>},
    {"divisibleby", t_divisibleby},
    {"eq", t_eq},
    {"equalto", t_eq},
    {"escaped", plain_test<is_escaped>},
    {"even", t_even},
    {"false", plain_test<is_false>},
    {"filter", t_filter},
    {"float", plain_test<is_float>},
    {"ge", t_ge},
    {"greaterthan", t_gt},
    {"gt", t_gt},
    {"in", t_in},
    {"integer", plain_test<is_integer>},
    {"iterable", plain_test<is_iterable>},
    {"le", t_le},
    {"lessthan", t_lt},
    {"lower", t_lower},
    {"lt", t_lt},
    {"mapping", plain_test<is_mapping>},
    {"ne", t_ne},
    {"none", plain_test<is_none>},
    {"number", plain_test<is_number>},
    {"odd", t_odd},
    {"sameas", t_sameas},
    {"sequence", plain_test<is_sequence>},
    {"string", plain_test<is_string>},
    {"test", t_test},
    {"true", plain_test<is_true>},
    {"undefined", plain_test<is_undefined>},
    {"upper", t_upper},
};

}  // namespace

Test find_test(std::string_view name) {
  const auto* row = std::ranges::find(kTests, name, &TestRow::name);
  return row == std::end(kTests) ? nullptr : row->test;
}

}  // namespace quipu::jinja
