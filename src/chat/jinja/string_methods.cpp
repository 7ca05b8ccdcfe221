#include "chat/jinja/string_methods.h"

#include <algorithm>

#include "chat/jinja/builtins.h"
#include "chat/jinja/format.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/strings.h"

namespace quipu::jinja {

namespace {

void no_arguments(std::string_view name, Arguments& arguments) {
  Parameters(name, arguments).end();
}

// Case.

Value str_lower(Interpreter& vm, const Text& self, Arguments& arguments) {
  no_arguments("lower", arguments);
  return vm.text(lower(self));
}
Value str_upper(Interpreter& vm, const Text& self, Arguments& arguments) {
  no_arguments("upper", arguments);
  return vm.text(upper(self));
}
Value str_capitalize(Interpreter& vm, const Text& self, Arguments& arguments) {
  no_arguments("capitalize", arguments);
  Text result;
  for (std::size_t i = 0; i < self.size(); ++i)
    i == 0 ? append_title(result, self[i]) : append_lower(result, self[i]);
  return vm.text(std::move(result));
}
Value str_title(Interpreter& vm, const Text& self, Arguments& arguments) {
  no_arguments("title", arguments);
  Text result;
  bool in_word = false;
  for (const Char c : self) {
    in_word ? append_lower(result, c) : append_title(result, c);
    in_word = is_lower(c) || is_upper(c) || is_title(c);
  }
  return vm.text(std::move(result));
}
Value str_swapcase(Interpreter& vm, const Text& self, Arguments& arguments) {
  no_arguments("swapcase", arguments);
  Text result;
  for (const Char c : self) is_upper(c) ? append_lower(result, c) : append_upper(result, c);
  return vm.text(std::move(result));
}

// Ends.

Value stripped(Interpreter& vm, const Text& self, Arguments& arguments, std::string_view name, bool left,
               bool right) {
  Parameters parameters(name, arguments);
  const Text* characters = parameters.optional_text("chars");
  parameters.end();
  if (characters == nullptr) return vm.text(Text(strip(self, nullptr, left, right)));
  const TextView set = *characters;
  pay_for_search(vm.budget(), self.size(), set.size());
  return vm.text(Text(strip(self, &set, left, right)));
}
Value str_strip(Interpreter& vm, const Text& self, Arguments& arguments) {
  return stripped(vm, self, arguments, "strip", true, true);
}
Value str_lstrip(Interpreter& vm, const Text& self, Arguments& arguments) {
  return stripped(vm, self, arguments, "lstrip", true, false);
}
Value str_rstrip(Interpreter& vm, const Text& self, Arguments& arguments) {
  return stripped(vm, self, arguments, "rstrip", false, true);
}

bool begins(TextView text, TextView with) {
  return text.size() >= with.size() && equal(text.substr(0, with.size()), with);
}
bool ends(TextView text, TextView with) {
  return text.size() >= with.size() && equal(text.substr(text.size() - with.size()), with);
}

/// The part of a string that optional start and end arguments leave; `start` is where it begins. False if it
/// begins behind the end, where not even an empty string is found.
bool take_part(Parameters& parameters, TextView& text, std::size_t& start) {
  const auto size = static_cast<std::int64_t>(text.size());
  const auto bound = [&](std::string_view name, std::int64_t usual) {
    const Value* value = parameters.optional(name);
    if (value == nullptr || value->is_none()) return usual;
    const std::int64_t i = as_integer(*value, name);
    return i < 0 ? std::max<std::int64_t>(0, i < -size ? 0 : i + size) : i;
  };
  const std::int64_t begin = bound("start", 0);
  const std::int64_t end = std::min(bound("end", size), size);
  parameters.end();
  start = static_cast<std::size_t>(std::min(begin, size));
  text = text.substr(start, begin < end ? static_cast<std::size_t>(end - begin) : 0);
  return begin <= end;
}

Value has_end(const Text& self, Arguments& arguments, std::string_view name,
              bool (*test)(TextView, TextView)) {
  Parameters parameters(name, arguments);
  const Value affix = parameters.required("prefix");
  TextView text = self;
  std::size_t start = 0;
  const bool possible = take_part(parameters, text, start);
  require_defined(affix);
  const auto one = [&](const Value& value) {
    if (value.as_text() == nullptr) {
      fail(ErrorCode::invalid_argument, "{} first arg must be str or a tuple of str, not {}", name,
           type_name(value));
    }
    return possible && test(text, *value.as_text());
  };
  const Sequence* several = affix.as_list();
  if (several == nullptr || several->type == Sequence::Type::list) return Value::boolean(one(affix));
  return Value::boolean(std::any_of(several->items.begin(), several->items.end(), one));
}
Value str_startswith(Interpreter&, const Text& self, Arguments& arguments) {
  return has_end(self, arguments, "startswith", begins);
}
Value str_endswith(Interpreter&, const Text& self, Arguments& arguments) {
  return has_end(self, arguments, "endswith", ends);
}
Value str_removeprefix(Interpreter& vm, const Text& self, Arguments& arguments) {
  Parameters parameters("removeprefix", arguments);
  const Text& prefix = parameters.text("prefix");
  parameters.end();
  return vm.text(begins(self, prefix) ? self.substr(prefix.size()) : self);
}
Value str_removesuffix(Interpreter& vm, const Text& self, Arguments& arguments) {
  Parameters parameters("removesuffix", arguments);
  const Text& suffix = parameters.text("suffix");
  parameters.end();
  return vm.text(ends(self, suffix) ? self.substr(0, self.size() - suffix.size()) : self);
}

// Searching.

enum class Search { first, last, count };

/// What is found, from the beginning of the string; -1 for nothing.
Int searched(Interpreter& vm, const Text& self, Arguments& arguments, std::string_view name, Search search) {
  Parameters parameters(name, arguments);
  const Text& needle = parameters.text("sub");
  TextView text = self;
  std::size_t start = 0;
  const bool possible = take_part(parameters, text, start);
  pay_for_search(vm.budget(), text.size(), needle.size());
  if (search == Search::count) {
    if (!possible) return 0;
    if (needle.empty()) return static_cast<Int>(text.size()) + 1;
    Int n = 0;
    for (std::size_t at = 0; (at = find(text, needle, at)) != TextView::npos; at += needle.size()) ++n;
    return n;
  }
  const std::size_t at = search == Search::first ? find(text, needle) : find_last(text, needle);
  return !possible || at == TextView::npos ? -1 : static_cast<Int>(at + start);
}
Int must_be_found(Int at) {
  if (at < 0) fail(ErrorCode::invalid_argument, "substring not found");
  return at;
}
Value str_find(Interpreter& vm, const Text& self, Arguments& arguments) {
  return Value::integer(searched(vm, self, arguments, "find", Search::first));
}
Value str_rfind(Interpreter& vm, const Text& self, Arguments& arguments) {
  return Value::integer(searched(vm, self, arguments, "rfind", Search::last));
}
Value str_index(Interpreter& vm, const Text& self, Arguments& arguments) {
  return Value::integer(must_be_found(searched(vm, self, arguments, "index", Search::first)));
}
Value str_rindex(Interpreter& vm, const Text& self, Arguments& arguments) {
  return Value::integer(must_be_found(searched(vm, self, arguments, "rindex", Search::last)));
}
Value str_count(Interpreter& vm, const Text& self, Arguments& arguments) {
  return Value::integer(searched(vm, self, arguments, "count", Search::count));
}

Value str_replace(Interpreter& vm, const Text& self, Arguments& arguments) {
  Parameters parameters("replace", arguments);
  const Text& old = parameters.text("old");
  const Text& fresh = parameters.text("new");
  const std::int64_t count = parameters.integer_or("count", -1);
  parameters.end();
  return vm.text(replaced(vm, self, old, fresh, count));
}

// Dividing and joining.

Value list_of(Interpreter& vm, const std::vector<TextView>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const TextView part : parts) items.push_back(vm.text(Text(part)));
  return make_sequence(vm.budget(), std::move(items));
}

std::vector<TextView> split_at_space(TextView text, std::int64_t most, bool from_right) {
  std::vector<TextView> parts;
  text = strip(text, nullptr, !from_right, from_right);
  while (!text.empty()) {
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) >= most) {
      parts.push_back(text);
      break;
    }
    std::size_t n = 0;
    while (n < text.size() && !is_space(from_right ? text[text.size() - 1 - n] : text[n])) ++n;
    parts.push_back(from_right ? text.substr(text.size() - n) : text.substr(0, n));
    text = from_right ? text.substr(0, text.size() - n) : text.substr(n);
    text = strip(text, nullptr, !from_right, from_right);
  }
  return parts;
}

std::vector<TextView> split_at(TextView text, TextView separator, std::int64_t most, bool from_right) {
  std::vector<TextView> parts;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t at = from_right ? find_last(text, separator) : find(text, separator);
    if (at == TextView::npos) break;
    parts.push_back(from_right ? text.substr(at + separator.size()) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

Value divided(Interpreter& vm, const Text& self, Arguments& arguments, std::string_view name,
              bool from_right) {
  Parameters parameters(name, arguments);
  const Text* separator = parameters.optional_text("sep");
  const std::int64_t most = parameters.integer_or("maxsplit", -1);
  parameters.end();
  if (separator != nullptr && separator->empty()) fail(ErrorCode::invalid_argument, "empty separator");
  pay_for_search(vm.budget(), self.size(), separator == nullptr ? 1 : separator->size());
  vm.budget().bytes(self.size() * sizeof(TextView));
  std::vector<TextView> parts = separator == nullptr ? split_at_space(self, most, from_right)
                                                     : split_at(self, *separator, most, from_right);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return list_of(vm, parts);
}
Value str_split(Interpreter& vm, const Text& self, Arguments& arguments) {
  return divided(vm, self, arguments, "split", false);
}
Value str_rsplit(Interpreter& vm, const Text& self, Arguments& arguments) {
  return divided(vm, self, arguments, "rsplit", true);
}
Value str_splitlines(Interpreter& vm, const Text& self, Arguments& arguments) {
  Parameters parameters("splitlines", arguments);
  const bool keep_ends = parameters.flag_or("keepends", false);
  parameters.end();
  vm.budget().text(self.size());
  return list_of(vm, split_lines(self, keep_ends));
}

Value parted(Interpreter& vm, const Text& self, Arguments& arguments, std::string_view name,
             bool from_right) {
  Parameters parameters(name, arguments);
  const Text& separator = parameters.text("sep");
  parameters.end();
  if (separator.empty()) fail(ErrorCode::invalid_argument, "empty separator");
  pay_for_search(vm.budget(), self.size(), separator.size());
  const std::size_t at = from_right ? find_last(self, separator) : find(self, separator);
  const TextView text = self;
  std::vector<Value> parts;
  if (at != TextView::npos) {
    for (const TextView part :
         {text.substr(0, at), TextView(separator), text.substr(at + separator.size())}) {
      parts.push_back(vm.text(Text(part)));
    }
  } else {
    parts.assign(3, vm.text({}));
    parts[from_right ? 2 : 0] = vm.text(self);
  }
  return make_sequence(vm.budget(), std::move(parts), Sequence::Type::tuple);
}
Value str_partition(Interpreter& vm, const Text& self, Arguments& arguments) {
  return parted(vm, self, arguments, "partition", false);
}
Value str_rpartition(Interpreter& vm, const Text& self, Arguments& arguments) {
  return parted(vm, self, arguments, "rpartition", true);
}

Value str_join(Interpreter& vm, const Text& self, Arguments& arguments) {
  Parameters parameters("join", arguments);
  const Value& iterable = parameters.required("iterable");
  parameters.end();
  const Elements elements(vm.budget(), iterable);
  Text result;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Value element = elements[i];
    if (element.as_text() == nullptr) {
      fail(ErrorCode::invalid_argument, "sequence item {}: expected str instance, {} found", i,
           type_name(element));
    }
    vm.budget().text(self.size() + element.as_text()->size());
    if (i > 0) result += self;
    result += *element.as_text();
  }
  return Value::text(std::move(result));
}

// Filling.

enum class Place { left, right, center };

Value filled(Interpreter& vm, const Text& self, Arguments& arguments, std::string_view name, Place place) {
  Parameters parameters(name, arguments);
  const std::int64_t width = parameters.integer("width");
  const Text* fill = parameters.optional_text("fillchar");
  parameters.end();
  if (fill != nullptr && fill->size() != 1) {
    fail(ErrorCode::invalid_argument, "The fill character must be exactly one character long");
  }
  return vm.text(justified(vm, self, width, fill == nullptr ? U' ' : (*fill)[0], place == Place::right,
                           place == Place::center));
}
Value str_ljust(Interpreter& vm, const Text& self, Arguments& arguments) {
  return filled(vm, self, arguments, "ljust", Place::left);
}
Value str_rjust(Interpreter& vm, const Text& self, Arguments& arguments) {
  return filled(vm, self, arguments, "rjust", Place::right);
}
Value str_center(Interpreter& vm, const Text& self, Arguments& arguments) {
  return filled(vm, self, arguments, "center", Place::center);
}
Value str_zfill(Interpreter& vm, const Text& self, Arguments& arguments) {
  Parameters parameters("zfill", arguments);
  const std::int64_t width = parameters.integer("width");
  parameters.end();
  const bool sign = !self.empty() && (plain(self[0]) == '-' || plain(self[0]) == '+');
  const auto size = static_cast<std::int64_t>(self.size());
  if (width <= size) return vm.text(self);
  vm.budget().text(static_cast<std::uint64_t>(width));
  Text result = self;
  result.insert(sign ? 1 : 0, Text(static_cast<std::size_t>(width - size), U'0'));
  return Value::text(std::move(result));
}
Value str_expandtabs(Interpreter& vm, const Text& self, Arguments& arguments) {
  Parameters parameters("expandtabs", arguments);
  const std::int64_t size = parameters.integer_or("tabsize", 8);
  parameters.end();
  Text result;
  std::int64_t column = 0;
  for (const Char c : self) {
    if (plain(c) == '\t') {
      const std::int64_t n = size > 0 ? size - column % size : 0;
      vm.budget().text(static_cast<std::uint64_t>(n));
      result.append(static_cast<std::size_t>(n), U' ' | (c & kInputMark));
      column += n;
    } else {
      result.push_back(c);
      column = plain(c) == '\n' || plain(c) == '\r' ? 0 : column + 1;
    }
  }
  return vm.text(std::move(result));
}

// Questions.

template <bool (*kTest)(Char)>
Value str_all(Interpreter&, const Text& self, Arguments& arguments) {
  no_arguments("is...", arguments);
  return Value::boolean(!self.empty() && std::all_of(self.begin(), self.end(), kTest));
}
bool is_alphanumeric(Char c) {
  return is_alpha(c) || is_numeric(c);
}
Value str_isascii(Interpreter&, const Text& self, Arguments& arguments) {
  no_arguments("isascii", arguments);
  return Value::boolean(std::all_of(self.begin(), self.end(), [](Char c) { return plain(c) < 0x80; }));
}
Value str_isprintable(Interpreter&, const Text& self, Arguments& arguments) {
  no_arguments("isprintable", arguments);
  return Value::boolean(std::all_of(self.begin(), self.end(), is_printable));
}
Value str_isidentifier(Interpreter&, const Text& self, Arguments& arguments) {
  no_arguments("isidentifier", arguments);
  return Value::boolean(!self.empty() && !is_numeric(self[0]) &&
                        std::all_of(self.begin(), self.end(), is_word));
}
Value str_islower(Interpreter&, const Text& self, Arguments& arguments) {
  no_arguments("islower", arguments);
  return Value::boolean(has_case(self, false));
}
Value str_isupper(Interpreter&, const Text& self, Arguments& arguments) {
  no_arguments("isupper", arguments);
  return Value::boolean(has_case(self, true));
}
Value str_istitle(Interpreter&, const Text& self, Arguments& arguments) {
  no_arguments("istitle", arguments);
  bool in_word = false, any = false;
  for (const Char c : self) {
    const bool begins_word = is_upper(c) || is_title(c);
    if (begins_word ? in_word : is_lower(c) && !in_word) return Value::boolean(false);
    in_word = begins_word || is_lower(c);
    any = any || in_word;
  }
  return Value::boolean(any);
}

Value str_format(Interpreter& vm, const Text& self, Arguments& arguments) {
  return brace_format(vm, self, arguments, false);
}
Value str_format_map(Interpreter& vm, const Text& self, Arguments& arguments) {
  Parameters parameters("format_map", arguments);
  const Value& mapping = parameters.required("mapping");
  parameters.end();
  const Dict* dict = mapping.as_dict();
  if (dict == nullptr) fail(ErrorCode::invalid_argument, "format_map() argument must be a mapping");
  Arguments named;
  for (const auto& [key, value] : dict->entries()) {
    if (key.as_text() != nullptr) named.named.emplace_back(bytes_of(*key.as_text()), value);
  }
  return brace_format(vm, self, named, false);
}

constexpr StringMethodRow kStringMethods[] = {
    {"capitalize", str_capitalize},
    {"casefold", str_lower},
    {"center", str_center},
    {"count", str_count},
    {"endswith", str_endswith},
    {"expandtabs", str_expandtabs},
    {"find", str_find},
    {"format", str_format},
    {"format_map", str_format_map},
    {"index", str_index},
    {"isalnum", str_all<is_alphanumeric>},
    {"isalpha", str_all<is_alpha>},
    {"isascii", str_isascii},
    {"isdecimal", str_all<is_decimal>},
    {"isdigit", str_all<is_digit>},
    {"isidentifier", str_isidentifier},
    {"islower", str_islower},
    {"isnumeric", str_all<is_numeric>},
    {"isprintable", str_isprintable},
    {"isspace", str_all<is_space>},
    {"istitle", str_istitle},
    {"isupper", str_isupper},
    {"join", str_join},
    {"ljust", str_ljust},
    {"lower", str_lower},
    {"lstrip", str_lstrip},
    {"partition", str_partition},
    {"removeprefix", str_removeprefix},
    {"removesuffix", str_removesuffix},
    {"replace", str_replace},
    {"rfind", str_rfind},
    {"rindex", str_rindex},
    {"rjust", str_rjust},
    {"rpartition", str_rpartition},
    {"rsplit", str_rsplit},
    {"rstrip", str_rstrip},
    {"split", str_split},
    {"splitlines", str_splitlines},
    {"startswith", str_startswith},
    {"strip", str_strip},
    {"swapcase", str_swapcase},
    {"title", str_title},
    {"upper", str_upper},
    {"zfill", str_zfill},
};

}  // namespace

const StringMethodRow* find_string_method(std::string_view name) {
  const auto* row = std::ranges::find(kStringMethods, name, &StringMethodRow::name);
  return row == std::end(kStringMethods) ? nullptr : row;
}

}  // namespace quipu::jinja
