// Methods of lists and dictionaries, and how methods of any object are found and bound.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "chat/jinja/builtins.h"
#include "chat/jinja/format.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/string_methods.h"
#include "chat/jinja/strings.h"

namespace quipu::jinja {

namespace {

using ObjectMethod = Value (*)(Interpreter& vm, const Value& self, Arguments& arguments);

Value list_index(Interpreter& vm, const Value& self, Arguments& arguments) {
  Parameters parameters("index", arguments);
  const Value& wanted = parameters.required("value");
  parameters.end();
  const std::vector<Value>& items = self.as_list()->items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equal(vm.budget(), items[i], wanted)) return Value::integer(static_cast<Int>(i));
  }
  fail(ErrorCode::invalid_argument, "the value is not in the list");
}
Value list_count(Interpreter& vm, const Value& self, Arguments& arguments) {
  Parameters parameters("count", arguments);
  const Value& wanted = parameters.required("value");
  parameters.end();
  Int n = 0;
  for (const Value& item : self.as_list()->items) n += equal(vm.budget(), item, wanted) ? 1 : 0;
  return Value::integer(n);
}
Value same_object(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters("copy", arguments).end();
  return self;  // nothing can change either
}

Value dict_get(Interpreter& vm, const Value& self, Arguments& arguments) {
  if (!arguments.named.empty()) fail(ErrorCode::invalid_argument, "dict.get() takes no keyword arguments");
  Parameters parameters("get", arguments);
  const Value& key = parameters.required("key");
  const Value* usual = parameters.optional("default");
  parameters.end();
  require_hashable(key);
  const Value* value = self.as_dict()->find(vm.budget(), key);
  if (value != nullptr) return *value;
  return usual == nullptr ? Value() : *usual;
}
Value dict_keys(Interpreter& vm, const Value& self, Arguments& arguments) {
  Parameters("keys", arguments).end();
  std::vector<Value> items;
  for (const auto& [key, value] : self.as_dict()->entries()) items.push_back(key);
  return make_sequence(vm.budget(), std::move(items), Sequence::Type::keys);
}
Value dict_values(Interpreter& vm, const Value& self, Arguments& arguments) {
  Parameters("values", arguments).end();
  std::vector<Value> items;
  for (const auto& [key, value] : self.as_dict()->entries()) items.push_back(value);
  return make_sequence(vm.budget(), std::move(items), Sequence::Type::values);
}
Value dict_items(Interpreter& vm, const Value& self, Arguments& arguments) {
  Parameters("items", arguments).end();
  std::vector<Value> items;
  for (const auto& [key, value] : self.as_dict()->entries()) {
    items.push_back(make_sequence(vm.budget(), {key, value}, Sequence::Type::tuple));
  }
  return make_sequence(vm.budget(), std::move(items), Sequence::Type::items);
}

struct ObjectMethodRow {
  std::string_view name;
  ObjectMethod method;  ///< null: the sandbox forbids it, since it would change the object
};
constexpr ObjectMethodRow kListMethods[] = {
    {"append", nullptr}, {"clear", nullptr},    {"copy", same_object}, {"count", list_count},
    {"extend", nullptr}, {"index", list_index}, {"insert", nullptr},   {"pop", nullptr},
    {"remove", nullptr}, {"reverse", nullptr},  {"sort", nullptr},
};
constexpr ObjectMethodRow kTupleMethods[] = {{"count", list_count}, {"index", list_index}};
constexpr ObjectMethodRow kDictMethods[] = {
    {"clear", nullptr},  {"copy", same_object},   {"get", dict_get},    {"items", dict_items},
    {"keys", dict_keys}, {"pop", nullptr},        {"popitem", nullptr}, {"setdefault", nullptr},
    {"update", nullptr}, {"values", dict_values},
};

Value as_safe(Interpreter& vm, const Value& value) {
  if (const Text* text = value.as_text()) return vm.text(*text, true);
  const Sequence* parts = value.as_sequence();
  if (parts == nullptr) return value;
  std::vector<Value> items;
  for (const Value& part : parts->items) items.push_back(as_safe(vm, part));
  return make_sequence(vm.budget(), std::move(items), parts->type);
}

/// On a safe string: what goes into the result is escaped, and the result is safe.
Value call_safely(Interpreter& vm, const StringMethodRow& row, const Text& self, Arguments& arguments) {
  if (row.name == "format") return brace_format(vm, self, arguments, true);
  const auto escape = [&](Value& value) {
    if (value.as_text() != nullptr && !value.is_safe()) value = vm.text(html_escaped(*value.as_text()), true);
  };
  if (row.name == "replace") std::ranges::for_each(arguments.positional, escape);
  if (row.name == "join" && arguments.positional.size() == 1) {
    std::vector<Value> items = Elements(vm.budget(), arguments.positional[0]).all(vm.budget());
    std::ranges::for_each(items, escape);
    arguments.positional[0] = make_sequence(vm.budget(), std::move(items));
  }
  return as_safe(vm, row.method(vm, self, arguments));
}

Value forbidden(const Value& object, std::string_view name) {
  return Value::undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(object)));
}

}  // namespace

std::optional<Value> method(const Value& object, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) return forbidden(object, name);
  if (object.as_text() != nullptr) {
    const StringMethodRow* row = find_string_method(name);
    if (row == nullptr) return std::nullopt;
    const auto call = [object, row](Interpreter& vm, Arguments& arguments) {
      return object.is_safe() ? call_safely(vm, *row, *object.as_text(), arguments)
                              : row->method(vm, *object.as_text(), arguments);
    };
    return Value::Data(std::make_shared<const Callable>(Callable{std::string(name), call}));
  }
  std::span<const ObjectMethodRow> rows;
  if (object.as_dict() != nullptr) rows = kDictMethods;
  if (const Sequence* list = object.as_list()) {
    rows =
        list->type == Sequence::Type::list ? std::span<const ObjectMethodRow>(kListMethods) : kTupleMethods;
  }
  const auto row = std::ranges::find(rows, name, &ObjectMethodRow::name);
  if (row == rows.end()) return std::nullopt;
  if (row->method == nullptr) return forbidden(object, name);
  const auto call = [object, function = row->method](Interpreter& vm, Arguments& arguments) {
    return function(vm, object, arguments);
  };
  return Value::Data(std::make_shared<const Callable>(Callable{std::string(name), call, object.depth() + 1}));
}

}  // namespace quipu::jinja
