// Functions that every template can call, and reading of arguments.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/builtins.h"
#include "chat/jinja/print.h"

namespace quipu::jinja {

const Value* Parameters::optional(std::string_view name) {
  used_.resize(arguments_.named.size(), false);
  if (next_ < arguments_.positional.size()) return &arguments_.positional[next_++];
  for (std::size_t i = 0; i < arguments_.named.size(); ++i) {
    if (arguments_.named[i].first != name) continue;
    used_[i] = true;
    return &arguments_.named[i].second;
  }
  return nullptr;
}

const Value& Parameters::required(std::string_view name) {
  const Value* value = optional(name);
  if (value == nullptr) {
    fail(ErrorCode::invalid_argument, "{}() missing 1 required positional argument: '{}'", function_, name);
  }
  return *value;
}

void Parameters::end() const {
  if (next_ < arguments_.positional.size()) {
    fail(ErrorCode::invalid_argument, "{}() takes at most {} arguments ({} given)", function_, next_,
         arguments_.positional.size());
  }
  for (std::size_t i = 0; i < arguments_.named.size(); ++i) {
    if (i < used_.size() && used_[i]) continue;
    fail(ErrorCode::invalid_argument, "{}() got an unexpected keyword argument '{}'", function_,
         arguments_.named[i].first.substr(0, 40));
  }
}

const Text& Parameters::text(std::string_view name) {
  const Value& value = required(name);
  require_defined(value);
  const Text* text = value.as_text();
  if (text == nullptr) {
    fail(ErrorCode::invalid_argument, "{}() argument '{}' must be str, not {}", function_, name,
         type_name(value));
  }
  return *text;
}

const Text* Parameters::optional_text(std::string_view name) {
  const Value* value = optional(name);
  if (value == nullptr || value->is_none()) return nullptr;
  require_defined(*value);
  const Text* text = value->as_text();
  if (text == nullptr) {
    fail(ErrorCode::invalid_argument, "{}() argument '{}' must be str or None, not {}", function_, name,
         type_name(*value));
  }
  return text;
}

std::int64_t Parameters::integer(std::string_view name) {
  return as_integer(required(name), name);
}
std::int64_t Parameters::integer_or(std::string_view name, std::int64_t usual) {
  const Value* value = optional(name);
  return value == nullptr ? usual : as_integer(*value, name);
}
bool Parameters::flag_or(std::string_view name, bool usual) {
  const Value* value = optional(name);
  return value == nullptr ? usual : truthy(*value);
}

std::int64_t as_integer(const Value& value, std::string_view what) {
  require_defined(value);
  Int i = 0;
  if (!value.get_int(i)) {
    fail(ErrorCode::invalid_argument, "'{}' object cannot be interpreted as an integer ({})",
         type_name(value), what);
  }
  if (i < INT64_MIN || i > INT64_MAX)
    fail(ErrorCode::invalid_argument, "the integer is too large ({})", what);
  return static_cast<std::int64_t>(i);
}

Text as_str(Interpreter& vm, const Value& value) {
  Text text;
  append_str(vm, text, value);
  return text;
}

TextView str_view(Interpreter& vm, const Value& value, Text& storage) {
  if (const Text* text = value.as_text()) return *text;
  storage = as_str(vm, value);
  return storage;
}

namespace {

Value range(Interpreter&, Arguments& arguments) {
  Parameters parameters("range", arguments);
  Range range;
  const std::int64_t first = parameters.integer("start");
  const Value* stop = parameters.optional("stop");
  const Value* step = parameters.optional("step");
  parameters.end();
  range.start = stop == nullptr ? 0 : first;
  range.stop = stop == nullptr ? first : as_integer(*stop, "stop");
  range.step = step == nullptr ? 1 : as_integer(*step, "step");
  if (range.step == 0) fail(ErrorCode::invalid_argument, "range() arg 3 must not be zero");
  if (range.size() > kMaxRange) {
    fail(ErrorCode::invalid_argument, "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).",
         kMaxRange);
  }
  return Value::Data(range);
}

/// What dict() and namespace() take: a mapping or pairs, and names.
void fill(Interpreter& vm, Dict& dict, Arguments& arguments) {
  if (arguments.positional.size() > 1) {
    fail(ErrorCode::invalid_argument, "dict expected at most 1 argument, got {}",
         arguments.positional.size());
  }
  for (const Value& from : arguments.positional) {
    require_defined(from);
    if (const Dict* other = from.as_dict()) {
      for (const auto& [key, value] : other->entries()) dict.set(vm.budget(), key, value);
      continue;
    }
    const Elements pairs(vm.budget(), from);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const Elements pair(vm.budget(), pairs[i]);
      if (pair.size() != 2) {
        fail(ErrorCode::invalid_argument,
             "dictionary update sequence element #{} has length {}; 2 is required", i, pair.size());
      }
      require_hashable(pair[0]);
      dict.set(vm.budget(), pair[0], pair[1]);
    }
  }
  for (auto& [name, value] : arguments.named) dict.set(vm.budget(), Value::text(name), std::move(value));
}

Value new_dict(Interpreter& vm, Arguments& arguments) {
  Dict dict;
  fill(vm, dict, arguments);
  return make_dict(std::move(dict));
}

Value new_namespace(Interpreter& vm, Arguments& arguments) {
  Namespace& space = vm.new_namespace();
  fill(vm, space.attributes, arguments);
  return Value::Data(&space);
}

Value raise_exception(Interpreter& vm, Arguments& arguments) {
  constexpr std::size_t kShown = 1000;
  Parameters parameters("raise_exception", arguments);
  const Text message = as_str(vm, parameters.required("message"));
  parameters.end();
  throw Error(ErrorCode::invalid_argument, bytes_of(TextView(message).substr(0, kShown)));
}

Value strftime_now(Interpreter& vm, Arguments& arguments) {
  constexpr std::size_t kLongest = 200;
  Parameters parameters("strftime_now", arguments);
  const Text& format = parameters.text("format");
  parameters.end();
  if (format.size() > kLongest) fail(ErrorCode::invalid_argument, "strftime_now: the format is too long");
  return vm.text(from_utf8(vm.clock()(bytes_of(format))));
}

struct FunctionRow {
  std::string_view name;
  Value (*function)(Interpreter&, Arguments&);
};
constexpr FunctionRow kFunctions[] = {
    {"dict", new_dict}, {"namespace", new_namespace},   {"raise_exception", raise_exception},
    {"range", range},   {"strftime_now", strftime_now},
};

}  // namespace

std::optional<Value> global_function(std::string_view name) {
  const auto* row = std::ranges::find(kFunctions, name, &FunctionRow::name);
  if (row == std::end(kFunctions)) return std::nullopt;
  return Value::Data(std::make_shared<const Callable>(Callable{std::string(name), row->function}));
}

}  // namespace quipu::jinja
