#include "chat/jinja/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "chat/jinja/builtins.h"
#include "chat/jinja/print.h"

namespace quipu::jinja {

namespace {

Value loop_function(const std::shared_ptr<Loop>& loop, std::string_view name,
                    Value (*call)(Interpreter&, Loop&, Arguments&)) {
  return Value::Data(std::make_shared<const Callable>(
      Callable{std::string(name),
               [loop, call](Interpreter& vm, Arguments& arguments) { return call(vm, *loop, arguments); },
               loop->depth_of_values + 1}));
}

Value loop_cycle(Interpreter&, Loop& loop, Arguments& arguments) {
  if (arguments.positional.empty()) fail(ErrorCode::invalid_argument, "no items for cycling given");
  return arguments.positional[loop.index % arguments.positional.size()];
}

Value loop_changed(Interpreter& vm, Loop& loop, Arguments& arguments) {
  if (!loop.active) fail(ErrorCode::invalid_argument, "the loop is over");
  const std::vector<Value>& values = arguments.positional;
  bool same = loop.last_changed.has_value() && loop.last_changed->size() == values.size();
  for (std::size_t i = 0; same && i < values.size(); ++i) {
    same = equal(vm.budget(), (*loop.last_changed)[i], values[i]);
  }
  if (!same) loop.last_changed = values;
  return Value::boolean(!same);
}

std::optional<Value> loop_attribute(const std::shared_ptr<Loop>& loop, std::string_view name) {
  const auto size = static_cast<Int>(loop->elements.size());
  const auto index = static_cast<Int>(loop->index);
  const auto depth0 = static_cast<Int>(loop->recursion);
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(size - index);
  if (name == "revindex0") return Value::integer(size - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 >= size);
  if (name == "length") return Value::integer(size);
  if (name == "depth") return Value::integer(depth0 + 1);
  if (name == "depth0") return Value::integer(depth0);
  if (name == "previtem") {
    if (index == 0 || index > size) return Value::undefined("there is no previous item");
    return loop->elements[loop->index - 1];
  }
  if (name == "nextitem") {
    if (index + 1 >= size) return Value::undefined("there is no next item");
    return loop->elements[loop->index + 1];
  }
  if (name == "cycle") return loop_function(loop, name, loop_cycle);
  if (name == "changed") return loop_function(loop, name, loop_changed);
  return std::nullopt;
}

std::optional<Value> macro_attribute(Interpreter& vm, const Macro& macro, std::string_view name) {
  const MacroDefinition& definition = *macro.definition;
  if (name == "name") return Value::text(definition.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const std::string& parameter : definition.parameter_names) names.push_back(Value::text(parameter));
    return make_sequence(vm.budget(), std::move(names), Sequence::Type::tuple);
  }
  if (name == "catch_kwargs") return Value::boolean(definition.uses_kwargs);
  if (name == "catch_varargs") return Value::boolean(definition.uses_varargs);
  if (name == "caller") return Value::boolean(definition.uses_caller);
  return std::nullopt;
}

/// What a value has besides elements.
std::optional<Value> own_attribute(Interpreter& vm, const Value& object, std::string_view name) {
  if (const auto* loop = object.get_if<std::shared_ptr<Loop>>()) return loop_attribute(*loop, name);
  if (const Macro* const* macro = object.get_if<const Macro*>()) return macro_attribute(vm, **macro, name);
  if (Namespace* const* space = object.get_if<Namespace*>()) {
    const Value* value = (*space)->attributes.find(name);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  const Sequence* sequence = object.as_sequence();
  if (sequence != nullptr && sequence->type == Sequence::Type::group) {
    if (name == "grouper") return sequence->items[0];
    if (name == "list") return sequence->items[1];
  }
  return method(object, name);
}

std::string described(const Value& object) {
  if (object.is_none()) return "None";
  if (object.get_if<Namespace*>() != nullptr) return "jinja2.utils.Namespace object";
  if (object.get_if<const Macro*>() != nullptr) return "jinja2.runtime.Macro object";
  if (object.get_if<std::shared_ptr<Loop>>() != nullptr) return "jinja2.runtime.LoopContext object";
  return fmt::format("{} object", type_name(object));
}

/// Undefined, saying what is missing of what.
Value missing(Interpreter& vm, const Value& object, const Value& key) {
  constexpr std::size_t kShown = 100;
  if (const Text* name = key.as_text()) {
    return Value::undefined(fmt::format("'{}' has no attribute '{}'", described(object),
                                        bytes_of(TextView(*name).substr(0, kShown))));
  }
  Text shown;
  append_repr(vm, shown, key);
  return Value::undefined(
      fmt::format("{} has no element {}", described(object), bytes_of(TextView(shown).substr(0, kShown))));
}

/// The element that a key stands for, if the object has elements and this one.
std::optional<Value> element(Interpreter& vm, const Value& object, const Value& key) {
  if (const Dict* dict = object.as_dict()) {
    if (!hashable(key)) return std::nullopt;
    const Value* value = dict->find(vm.budget(), key);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  Int i = 0;
  if (!key.get_int(i)) return std::nullopt;
  const bool indexed =
      object.as_text() != nullptr || object.as_list() != nullptr || object.get_if<Range>() != nullptr;
  std::size_t length = 0;
  if (!indexed || !length_of(object, length)) return std::nullopt;
  const auto size = static_cast<Int>(length);
  if (i < 0) i += size;
  if (i < 0 || i >= size) return std::nullopt;
  const auto at = static_cast<std::size_t>(i);
  if (const Text* text = object.as_text()) return vm.text(Text(1, (*text)[at]), object.is_safe());
  return Elements(vm.budget(), object)[at];
}

}  // namespace

Value attribute(Interpreter& vm, const Value& object, std::string_view name) {
  require_defined(object);
  if (std::optional<Value> own = own_attribute(vm, object, name)) return *std::move(own);
  if (const Dict* dict = object.as_dict()) {
    if (const Value* value = dict->find(name)) return *value;
  }
  return missing(vm, object, Value::text(name));
}

Value subscript(Interpreter& vm, const Value& object, const Value& key) {
  constexpr std::size_t kLongestMethod = 40;
  require_defined(object);
  if (std::optional<Value> value = element(vm, object, key)) return *std::move(value);
  if (const Text* name = key.as_text(); name != nullptr && name->size() < kLongestMethod) {
    if (std::optional<Value> own = own_attribute(vm, object, bytes_of(*name))) return *std::move(own);
  }
  return missing(vm, object, key);
}

namespace {

struct Bounds {
  Int start = 0, stop = 0, step = 1;
};

/// Python's slice.indices().
Bounds slice_bounds(Int size, const Value& start, const Value& stop, const Value& step) {
  const auto number = [](const Value& value, Int usual) {
    Int i = 0;
    if (value.is_none()) return usual;
    require_defined(value);
    if (!value.get_int(i)) {
      fail(ErrorCode::invalid_argument, "slice indices must be integers or None or have an __index__ method");
    }
    return i;
  };
  Bounds bounds;
  bounds.step = number(step, 1);
  if (bounds.step == 0) fail(ErrorCode::invalid_argument, "slice step cannot be zero");
  const bool forward = bounds.step > 0;
  const Int low = forward ? 0 : -1, high = forward ? size : size - 1;
  const auto clamp = [&](Int i) { return i < 0 ? std::max(i + size, low) : std::min(i, high); };
  bounds.start =
      start.is_none() ? (forward ? low : high) : clamp(std::clamp(number(start, 0), -size - 1, size));
  bounds.stop = stop.is_none() ? (forward ? high : low) : clamp(std::clamp(number(stop, 0), -size - 1, size));
  return bounds;
}

}  // namespace

Value slice(Interpreter& vm, const Value& object, const Value& start, const Value& stop, const Value& step) {
  require_defined(object);
  const Text* text = object.as_text();
  const Sequence* list = object.as_list();
  const Range* range = object.get_if<Range>();
  if (text == nullptr && list == nullptr && range == nullptr) {
    return Value::undefined(fmt::format("{} has no element slice", described(object)));
  }
  std::size_t length = 0;
  length_of(object, length);
  const Bounds bounds = slice_bounds(static_cast<Int>(length), start, stop, step);
  if (text != nullptr && bounds.step == 1) {
    const Int n = std::max<Int>(0, bounds.stop - bounds.start);
    return vm.text(text->substr(static_cast<std::size_t>(bounds.start), static_cast<std::size_t>(n)),
                   object.is_safe());
  }
  const auto more = [&](Int i) { return bounds.step > 0 ? i < bounds.stop : i > bounds.stop; };
  Text characters;
  std::vector<Value> items;
  for (Int i = bounds.start; more(i); i += bounds.step) {
    const auto at = static_cast<std::size_t>(i);
    if (text != nullptr) characters.push_back((*text)[at]);
    if (list != nullptr) items.push_back(list->items[at]);
    if (range != nullptr) items.push_back(Value::integer(range->at(at)));
    if (bounds.step > static_cast<Int>(length) || -bounds.step > static_cast<Int>(length)) break;
  }
  if (text != nullptr) return vm.text(std::move(characters), object.is_safe());
  const bool tuple = list != nullptr && list->type != Sequence::Type::list;
  return make_sequence(vm.budget(), std::move(items), tuple ? Sequence::Type::tuple : Sequence::Type::list);
}

Value path(Interpreter& vm, Value object, const Value& path, const Value* usual) {
  const Text* text = path.as_text();
  const auto step = [&](const Value& key) {
    object = subscript(vm, object, key);
    if (usual != nullptr && object.is_undefined()) object = *usual;
  };
  if (text == nullptr) {
    step(path);
    return object;
  }
  TextView rest = *text;
  while (true) {
    const std::size_t dot = find(rest, U".");
    const TextView part = rest.substr(0, dot);
    const bool number =
        !part.empty() && part.size() < 18 &&
        std::all_of(part.begin(), part.end(), [](Char c) { return plain(c) >= '0' && plain(c) <= '9'; });
    Int index = 0;
    for (const Char c : part) index = number ? index * 10 + (plain(c) - '0') : 0;
    step(number ? Value::integer(index) : Value::text(Text(part)));
    if (dot == TextView::npos) return object;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace quipu::jinja
