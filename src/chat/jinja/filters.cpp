// Filters, by the reference's names. Those that give generators there are computed at once here, but can
// likewise be gone through only once.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/jinja/access.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"
#include "chat/jinja/strings.h"

namespace quipu::jinja {

namespace {

// Strings.

Value f_string(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("string", arguments).end();
  return input.as_text() != nullptr ? input : Value::text(as_str(vm, input));
}
Value f_lower(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("lower", arguments).end();
  return vm.text(lower(as_str(vm, input)), input.is_safe());
}
Value f_upper(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("upper", arguments).end();
  return vm.text(upper(as_str(vm, input)), input.is_safe());
}
Value f_capitalize(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("capitalize", arguments).end();
  const Text text = as_str(vm, input);
  Text result;
  for (std::size_t i = 0; i < text.size(); ++i)
    i == 0 ? append_title(result, text[i]) : append_lower(result, text[i]);
  return vm.text(std::move(result), input.is_safe());
}
/// Words begin behind white space, hyphens and opening brackets.
Value f_title(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("title", arguments).end();
  Text result;
  bool begins = true;
  for (const Char c : as_str(vm, input)) {
    begins ? append_upper(result, c) : append_lower(result, c);
    begins = is_space(c) || contains(U"-({[<", c);
  }
  return vm.text(std::move(result));
}
Value f_trim(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("trim", arguments);
  const Text* characters = parameters.optional_text("chars");
  parameters.end();
  const Text text = as_str(vm, input);
  if (characters == nullptr) return vm.text(Text(strip(text, nullptr, true, true)), input.is_safe());
  const TextView set = *characters;
  pay_for_search(vm.budget(), text.size(), set.size());
  return vm.text(Text(strip(text, &set, true, true)), input.is_safe());
}
Value f_replace(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("replace", arguments);
  const Text old = as_str(vm, parameters.required("old")), fresh = as_str(vm, parameters.required("new"));
  const Value* count = parameters.optional("count");
  parameters.end();
  const std::int64_t most = count == nullptr || count->is_none() ? -1 : as_integer(*count, "count");
  return vm.text(replaced(vm, as_str(vm, input), old, fresh, most));
}
Value f_center(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("center", arguments);
  const std::int64_t width = parameters.integer_or("width", 80);
  parameters.end();
  return vm.text(justified(vm, as_str(vm, input), width, U' ', false, true), input.is_safe());
}
Value f_indent(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("indent", arguments);
  const Value* width = parameters.optional("width");
  const bool first = parameters.flag_or("first", false), blank = parameters.flag_or("blank", false);
  parameters.end();
  Text indent(4, U' ');
  if (width != nullptr && width->as_text() != nullptr) {
    indent = *width->as_text();
  } else if (width != nullptr) {
    const std::int64_t n = std::max<std::int64_t>(0, as_integer(*width, "width"));
    vm.budget().text(static_cast<std::uint64_t>(n));
    indent.assign(static_cast<std::size_t>(n), U' ');
  }
  Text text = as_str(vm, input);
  text.push_back(U'\n');  // so that an empty last line is one
  Text result = first ? indent : Text();
  const std::vector<TextView> lines = split_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    vm.budget().text(1 + indent.size() + lines[i].size());
    if (i > 0) result.push_back(U'\n');
    if (i > 0 && (blank || !lines[i].empty())) result += indent;
    result += lines[i];
  }
  return Value::text(std::move(result), input.is_safe());
}
Value f_truncate(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("truncate", arguments);
  const std::int64_t length = parameters.integer_or("length", 255);
  const bool kill_words = parameters.flag_or("killwords", false);
  const Text* given_end = parameters.optional_text("end");
  const std::int64_t leeway = parameters.integer_or("leeway", 5);
  parameters.end();
  const TextView end = given_end == nullptr ? TextView(U"...") : TextView(*given_end);
  const auto end_size = static_cast<std::int64_t>(end.size());
  if (length < end_size) fail(ErrorCode::invalid_argument, "expected length >= {}, got {}", end_size, length);
  if (leeway < 0) fail(ErrorCode::invalid_argument, "expected leeway >= 0, got {}", leeway);
  const Text text = as_str(vm, input);
  const auto size = static_cast<std::int64_t>(text.size());
  if (size <= length || size - length <= leeway) return vm.text(text, input.is_safe());
  TextView kept = TextView(text).substr(0, static_cast<std::size_t>(length - end_size));
  if (!kill_words) kept = kept.substr(0, find_last(kept, U" "));
  Text result(kept);
  result += end;
  return vm.text(std::move(result), input.is_safe());
}
Value f_wordcount(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("wordcount", arguments).end();
  Int n = 0;
  bool in_word = false;
  for (const Char c : as_str(vm, input)) {
    n += is_word(c) && !in_word ? 1 : 0;
    in_word = is_word(c);
  }
  return Value::integer(n);
}
Value f_escape(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("escape", arguments).end();
  return input.is_safe() ? input : vm.text(html_escaped(as_str(vm, input)), true);
}
Value f_forceescape(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("forceescape", arguments).end();
  return vm.text(html_escaped(as_str(vm, input)), true);
}
Value f_safe(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("safe", arguments).end();
  return vm.text(as_str(vm, input), true);
}
Value f_urlencode(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("urlencode", arguments).end();
  const std::string bytes = bytes_of(as_str(vm, input));
  std::string result;
  for (const char c : bytes) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || std::string_view("_.-~/").find(c) != std::string_view::npos) {
      result.push_back(c);
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return vm.text(from_utf8(result));
}
Value f_format(Interpreter& vm, const Value& input, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail(ErrorCode::invalid_argument, "can't handle positional and keyword arguments at the same time");
  }
  Value values;
  if (arguments.named.empty()) {
    values = make_sequence(vm.budget(), arguments.positional, Sequence::Type::tuple);
  } else {
    Dict dict;
    for (auto& [name, value] : arguments.named) dict.set(vm.budget(), Value::text(name), std::move(value));
    values = make_dict(std::move(dict));
  }
  return binary(vm, Binary::Op::modulo, Value::text(as_str(vm, input), input.is_safe()), values);
}
Value f_tojson(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("tojson", arguments);
  JsonOptions options;
  options.ensure_ascii = parameters.flag_or("ensure_ascii", false);
  const Value* indent = parameters.optional("indent");
  const Value* separators = parameters.optional("separators");
  options.sort_keys = parameters.flag_or("sort_keys", false);
  parameters.end();
  if (indent != nullptr && !indent->is_none()) {
    if (const Text* text = indent->as_text()) {
      options.indent = *text;
    } else {
      const std::int64_t n = std::max<std::int64_t>(0, as_integer(*indent, "indent"));
      vm.budget().text(static_cast<std::uint64_t>(n));
      options.indent = Text(static_cast<std::size_t>(n), U' ');
    }
    options.item_separator.assign(1, U',');
  }
  if (separators != nullptr && !separators->is_none()) {
    const Elements both(vm.budget(), *separators);
    if (both.size() != 2 || both[0].as_text() == nullptr || both[1].as_text() == nullptr) {
      fail(ErrorCode::invalid_argument, "tojson: separators must be two strings");
    }
    options.item_separator = *both[0].as_text();
    options.key_separator = *both[1].as_text();
  }
  Text result;
  append_json(vm, result, input, options);
  return Value::text(std::move(result));
}

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

// Lists.

std::vector<Value> elements_of(Interpreter& vm, const Value& input) {
  return Elements(vm.budget(), input).all(vm.budget());
}

Value f_list(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("list", arguments).end();
  return make_sequence(vm.budget(), elements_of(vm, input));
}
Value f_first(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("first", arguments).end();
  if (const auto* iterator = input.get_if<std::shared_ptr<Iterator>>()) {
    Iterator& it = **iterator;
    return it.next < it.items.size() ? it.items[it.next++]
                                     : Value::undefined("No first item, sequence was empty.");
  }
  const Elements elements(vm.budget(), input);
  return elements.size() > 0 ? elements[0] : Value::undefined("No first item, sequence was empty.");
}
Value f_last(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("last", arguments).end();
  if (input.get_if<std::shared_ptr<Iterator>>() != nullptr || input.is_undefined()) {
    require_defined(input);
    fail(ErrorCode::invalid_argument, "'{}' object is not reversible", type_name(input));
  }
  const Elements elements(vm.budget(), input);
  return elements.size() > 0 ? elements[elements.size() - 1]
                             : Value::undefined("No last item, sequence was empty.");
}
Value f_reverse(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("reverse", arguments).end();
  if (const Text* text = input.as_text()) return vm.text(Text(text->rbegin(), text->rend()), input.is_safe());
  std::vector<Value> items = elements_of(vm, input);
  std::reverse(items.begin(), items.end());
  return make_iterator(vm.budget(), std::move(items), "list_reverseiterator");
}
Value f_join(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("join", arguments);
  const Value* given = parameters.optional("d");
  const Value* attribute_name = parameters.optional("attribute");
  parameters.end();
  const Text separator = given == nullptr ? Text() : as_str(vm, *given);
  const Elements elements(vm.budget(), input);
  Text result;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    vm.budget().text(separator.size());
    if (i > 0) result += separator;
    const bool whole = attribute_name == nullptr || attribute_name->is_none();
    append_str(vm, result, whole ? elements[i] : path(vm, elements[i], *attribute_name));
  }
  return Value::text(std::move(result));
}
Value f_items(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters("items", arguments).end();
  std::vector<Value> items;
  if (const Dict* dict = input.as_dict()) {
    for (const auto& [key, value] : dict->entries()) {
      items.push_back(make_sequence(vm.budget(), {key, value}, Sequence::Type::tuple));
    }
  } else if (!input.is_undefined()) {
    fail(ErrorCode::invalid_argument, "Can only get item pairs from a mapping.");
  }
  return make_iterator(vm.budget(), std::move(items));
}

// Order.

/// What elements are ordered by.
struct Key {
  const Value* attribute =
      nullptr;  ///< null: the element itself; names with commas between them: a list of these
  const Value* usual = nullptr;
  bool fold_case = true;

  Value one(Interpreter& vm, const Value& element, const Value* name) const {
    Value value = name == nullptr ? element : path(vm, element, *name, usual);
    if (fold_case && value.as_text() != nullptr) return vm.text(lower(*value.as_text()));
    return value;
  }
  Value of(Interpreter& vm, const Value& element) const {
    const Text* names = attribute == nullptr ? nullptr : attribute->as_text();
    if (names == nullptr || find(*names, U",") == TextView::npos) return one(vm, element, attribute);
    std::vector<Value> keys;
    for (TextView rest = *names;;) {
      const std::size_t comma = find(rest, U",");
      const Value name = Value::text(Text(rest.substr(0, comma)));
      keys.push_back(one(vm, element, &name));
      if (comma == TextView::npos) break;
      rest.remove_prefix(comma + 1);
    }
    return make_sequence(vm.budget(), std::move(keys));
  }
};

const Value* unless_none(const Value* value) {
  return value == nullptr || value->is_none() ? nullptr : value;
}

using Keyed = std::pair<Value, Value>;  // key, element

std::vector<Keyed> keyed(Interpreter& vm, const std::vector<Value>& items, const Key& key) {
  std::vector<Keyed> result;
  result.reserve(items.size());
  for (const Value& item : items) result.emplace_back(key.of(vm, item), item);
  return result;
}

void sort_by_key(Interpreter& vm, std::vector<Keyed>& items, bool reverse) {
  vm.budget().steps(items.size());
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(vm.budget(), b.first, a.first) : less(vm.budget(), a.first, b.first);
  });
}

Value elements_of_keyed(Interpreter& vm, const std::vector<Keyed>& items) {
  std::vector<Value> result;
  for (const Keyed& item : items) result.push_back(item.second);
  return make_sequence(vm.budget(), std::move(result));
}

Value f_sort(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("sort", arguments);
  const bool reverse = parameters.flag_or("reverse", false);
  const bool case_sensitive = parameters.flag_or("case_sensitive", false);
  const Value* attribute_name = unless_none(parameters.optional("attribute"));
  parameters.end();
  std::vector<Keyed> items = keyed(vm, elements_of(vm, input), {attribute_name, nullptr, !case_sensitive});
  sort_by_key(vm, items, reverse);
  return elements_of_keyed(vm, items);
}
Value f_dictsort(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("dictsort", arguments);
  const bool case_sensitive = parameters.flag_or("case_sensitive", false);
  const Text* by = parameters.optional_text("by");
  const bool reverse = parameters.flag_or("reverse", false);
  parameters.end();
  require_defined(input);
  const bool by_key = by == nullptr || equal(*by, "key");
  if (!by_key && !equal(*by, "value")) {
    fail(ErrorCode::invalid_argument, "You can only sort by either \"key\" or \"value\"");
  }
  const Dict* dict = input.as_dict();
  if (dict == nullptr)
    fail(ErrorCode::invalid_argument, "'{} object' has no attribute 'items'", type_name(input));
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict->entries()) {
    pairs.push_back(make_sequence(vm.budget(), {key, value}, Sequence::Type::tuple));
  }
  const Value place = Value::integer(by_key ? 0 : 1);
  std::vector<Keyed> items = keyed(vm, pairs, {&place, nullptr, !case_sensitive});
  sort_by_key(vm, items, reverse);
  return elements_of_keyed(vm, items);
}
Value f_unique(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("unique", arguments);
  const bool case_sensitive = parameters.flag_or("case_sensitive", false);
  const Value* attribute_name = unless_none(parameters.optional("attribute"));
  parameters.end();
  Dict seen;
  std::vector<Value> result;
  for (Keyed& item : keyed(vm, elements_of(vm, input), {attribute_name, nullptr, !case_sensitive})) {
    require_hashable(item.first);
    if (seen.find(vm.budget(), item.first) != nullptr) continue;
    seen.set(vm.budget(), std::move(item.first), Value());
    result.push_back(std::move(item.second));
  }
  return make_iterator(vm.budget(), std::move(result));
}
Value extreme(Interpreter& vm, const Value& input, Arguments& arguments, std::string_view name,
              bool greatest) {
  Parameters parameters(name, arguments);
  const bool case_sensitive = parameters.flag_or("case_sensitive", false);
  const Value* attribute_name = unless_none(parameters.optional("attribute"));
  parameters.end();
  const std::vector<Keyed> items =
      keyed(vm, elements_of(vm, input), {attribute_name, nullptr, !case_sensitive});
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const Keyed* best = &items.front();
  for (const Keyed& item : items) {
    const bool better =
        greatest ? less(vm.budget(), best->first, item.first) : less(vm.budget(), item.first, best->first);
    if (better) best = &item;
  }
  return best->second;
}
Value f_min(Interpreter& vm, const Value& input, Arguments& arguments) {
  return extreme(vm, input, arguments, "min", false);
}
Value f_max(Interpreter& vm, const Value& input, Arguments& arguments) {
  return extreme(vm, input, arguments, "max", true);
}
Value f_sum(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("sum", arguments);
  const Value* attribute_name = unless_none(parameters.optional("attribute"));
  const Value* start = parameters.optional("start");
  parameters.end();
  Value sum = start == nullptr ? Value::integer(0) : *start;
  const Elements elements(vm.budget(), input);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Value element = attribute_name == nullptr ? elements[i] : path(vm, elements[i], *attribute_name);
    sum = binary(vm, Binary::Op::add, sum, element);
  }
  return sum;
}
Value f_groupby(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("groupby", arguments);
  const Value attribute_name = parameters.required("attribute");
  const Value* usual = unless_none(parameters.optional("default"));
  const bool case_sensitive = parameters.flag_or("case_sensitive", false);
  parameters.end();
  std::vector<Keyed> items = keyed(vm, elements_of(vm, input), {&attribute_name, usual, !case_sensitive});
  sort_by_key(vm, items, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < items.size();) {
    std::vector<Value> members;
    std::size_t end = begin;
    while (end < items.size() && equal(vm.budget(), items[begin].first, items[end].first)) {
      members.push_back(items[end++].second);
    }
    if (end == begin) members.push_back(items[end++].second);  // a NaN
    Value grouper = path(vm, members.front(), attribute_name, usual);
    Value list = make_sequence(vm.budget(), std::move(members));
    groups.push_back(
        make_sequence(vm.budget(), {std::move(grouper), std::move(list)}, Sequence::Type::group));
    begin = end;
  }
  return make_sequence(vm.budget(), std::move(groups));
}
Value f_batch(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("batch", arguments);
  const std::int64_t size = parameters.integer("linecount");
  const Value* fill = unless_none(parameters.optional("fill_with"));
  parameters.end();
  std::vector<Value> batches, batch;
  const auto flush = [&] { batches.push_back(make_sequence(vm.budget(), std::exchange(batch, {}))); };
  const Elements elements(vm.budget(), input);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (size >= 0 && batch.size() == static_cast<std::size_t>(size)) flush();
    batch.push_back(elements[i]);
  }
  if (!batch.empty()) {
    if (fill != nullptr && size > 0) vm.budget().bytes(static_cast<std::uint64_t>(size) * sizeof(Value));
    while (fill != nullptr && static_cast<std::int64_t>(batch.size()) < size) batch.push_back(*fill);
    flush();
  }
  return make_iterator(vm.budget(), std::move(batches));
}
Value f_slice(Interpreter& vm, const Value& input, Arguments& arguments) {
  Parameters parameters("slice", arguments);
  const std::int64_t slices = parameters.integer("slices");
  const Value* fill = unless_none(parameters.optional("fill_with"));
  parameters.end();
  if (slices <= 0) fail(ErrorCode::invalid_argument, "slice: {} is no number of slices", slices);
  vm.budget().steps(static_cast<std::uint64_t>(slices));
  const std::vector<Value> items = elements_of(vm, input);
  const auto n = static_cast<std::size_t>(slices);
  const std::size_t size = items.size() / n, longer = items.size() % n;
  std::vector<Value> result;
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t end = at + size + (i < longer ? 1 : 0);
    std::vector<Value> part(items.begin() + static_cast<std::ptrdiff_t>(at),
                            items.begin() + static_cast<std::ptrdiff_t>(end));
    if (fill != nullptr && i >= longer) part.push_back(*fill);
    result.push_back(make_sequence(vm.budget(), std::move(part)));
    at = end;
  }
  return make_iterator(vm.budget(), std::move(result));
}

// Filters and tests on every element.

Arguments without_first(const Arguments& arguments, std::size_t n) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<std::ptrdiff_t>(n));
  return rest;
}

// Whatever is false has no elements for these, also what cannot be gone through.

Value f_map(Interpreter& vm, const Value& input, Arguments& arguments) {
  std::vector<Value> result;
  if (!truthy(input)) return make_iterator(vm.budget(), std::move(result));
  const Elements elements(vm.budget(), input);
  if (arguments.positional.empty() && !arguments.named.empty()) {
    Parameters parameters("map", arguments);
    const Value& attribute_name = parameters.required("attribute");
    const Value* usual = unless_none(parameters.optional("default"));
    parameters.end();
    for (std::size_t i = 0; i < elements.size(); ++i)
      result.push_back(path(vm, elements[i], attribute_name, usual));
  } else {
    if (arguments.positional.empty()) fail(ErrorCode::invalid_argument, "map requires a filter argument");
    const std::string name = bytes_of(as_str(vm, arguments.positional.front()));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      Arguments rest = without_first(arguments, 1);
      result.push_back(vm.call_filter(name, elements[i], rest));
    }
  }
  return make_iterator(vm.budget(), std::move(result));
}

Value selected(Interpreter& vm, const Value& input, const Arguments& arguments, bool keep,
               bool by_attribute) {
  const std::size_t n_own = by_attribute ? 1 : 0;
  std::vector<Value> result;
  if (!truthy(input)) return make_iterator(vm.budget(), std::move(result));
  const Elements elements(vm.budget(), input);
  if (arguments.positional.size() < n_own) {
    fail(ErrorCode::invalid_argument, "Missing parameter for attribute name");
  }
  const bool has_test = arguments.positional.size() > n_own;
  const std::string test = has_test ? bytes_of(as_str(vm, arguments.positional[n_own])) : std::string();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Value element = elements[i];
    const Value value = by_attribute ? path(vm, element, arguments.positional[0]) : element;
    bool passes = false;
    if (has_test) {
      Arguments rest = without_first(arguments, n_own + 1);
      passes = vm.call_test(test, value, rest);
    } else {
      passes = truthy(value);
    }
    if (passes == keep) result.push_back(element);
  }
  return make_iterator(vm.budget(), std::move(result));
}
Value f_select(Interpreter& vm, const Value& input, Arguments& arguments) {
  return selected(vm, input, arguments, true, false);
}
Value f_reject(Interpreter& vm, const Value& input, Arguments& arguments) {
  return selected(vm, input, arguments, false, false);
}
Value f_selectattr(Interpreter& vm, const Value& input, Arguments& arguments) {
  return selected(vm, input, arguments, true, true);
}
Value f_rejectattr(Interpreter& vm, const Value& input, Arguments& arguments) {
  return selected(vm, input, arguments, false, true);
}

struct FilterRow {
  std::string_view name;
  Filter filter;
};
constexpr FilterRow kFilters[] = {
    {"abs", f_abs},
    {"attr", f_attr},
    {"batch", f_batch},
    {"capitalize", f_capitalize},
    {"center", f_center},
    {"count", f_length},
    {"d", f_default},
    {"default", f_default},
    {"dictsort", f_dictsort},
    {"e", f_escape},
    {"escape", f_escape},
    {"first", f_first},
    {"float", f_float},
    {"forceescape", f_forceescape},
    {"format", f_format},
    {"groupby", f_groupby},
    {"indent", f_indent},
    {"int", f_int},
    {"items", f_items},
    {"join", f_join},
    {"last", f_last},
    {"length", f_length},
    {"list", f_list},
    {"lower", f_lower},
    {"map", f_map},
    {"max", f_max},
    {"min", f_min},
    {"reject", f_reject},
    {"rejectattr", f_rejectattr},
    {"replace", f_replace},
    {"reverse", f_reverse},
    {"round", f_round},
    {"safe", f_safe},
    {"select", f_select},
    {"selectattr", f_selectattr},
    {"slice", f_slice},
    {"sort", f_sort},
    {"string", f_string},
    {"sum", f_sum},
    {"title", f_title},
    {"tojson", f_tojson},
    {"trim", f_trim},
    {"truncate", f_truncate},
    {"unique", f_unique},
    {"upper", f_upper},
    {"urlencode", f_urlencode},
    {"wordcount", f_wordcount},
};

}  // namespace

Filter find_filter(std::string_view name) {
  const auto* row = std::ranges::find(kFilters, name, &FilterRow::name);
  return row == std::end(kFilters) ? nullptr : row->filter;
}

}  // namespace quipu::jinja
