// Filters of strings, and those that give one.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/access.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"
#include "chat/jinja/strings.h"

namespace quipu::jinja {

namespace {

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

constexpr FilterRow kRows[] = {
    {"capitalize", f_capitalize},
    {"center", f_center},
    {"e", f_escape},
    {"escape", f_escape},
    {"forceescape", f_forceescape},
    {"format", f_format},
    {"indent", f_indent},
    {"lower", f_lower},
    {"replace", f_replace},
    {"safe", f_safe},
    {"string", f_string},
    {"title", f_title},
    {"tojson", f_tojson},
    {"trim", f_trim},
    {"truncate", f_truncate},
    {"upper", f_upper},
    {"urlencode", f_urlencode},
    {"wordcount", f_wordcount},
};

}  // namespace

std::span<const FilterRow> text_filters() {
  return kRows;
}

}  // namespace quipu::jinja
