// Filters of lists and of whatever else has elements. Those that give generators in the reference are
// computed at once here, but can likewise be gone through only once.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "chat/jinja/access.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"

namespace quipu::jinja {

namespace {

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

constexpr FilterRow kRows[] = {
    {"batch", f_batch},
    {"dictsort", f_dictsort},
    {"first", f_first},
    {"groupby", f_groupby},
    {"items", f_items},
    {"join", f_join},
    {"last", f_last},
    {"list", f_list},
    {"map", f_map},
    {"max", f_max},
    {"min", f_min},
    {"reject", f_reject},
    {"rejectattr", f_rejectattr},
    {"reverse", f_reverse},
    {"select", f_select},
    {"selectattr", f_selectattr},
    {"slice", f_slice},
    {"sort", f_sort},
    {"sum", f_sum},
    {"unique", f_unique},
};

}  // namespace

std::span<const FilterRow> sequence_filters() {
  return kRows;
}

}  // namespace quipu::jinja
