// The tables of filters, tests, functions and methods, and what these need to read their arguments.
#pragma once

#include <optional>
#include <string_view>

#include "chat/jinja/interpreter.h"

namespace quipu::jinja {

using Filter = Value (*)(Interpreter& vm, const Value& input, Arguments& arguments);
using Test = bool (*)(Interpreter& vm, const Value& input, Arguments& arguments);

// Null for a name that is not in the table.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

/// range, namespace and the like; nothing for other names.
std::optional<Value> global_function(std::string_view name);

/// A method of a string, list or dictionary, bound to it; nothing for other names. What the sandbox of the
/// reference forbids is undefined and says so when it is used.
std::optional<Value> method(const Value& object, std::string_view name);

/// Takes the arguments of a function one after the other, by place or by name.
class Parameters {
 public:
  Parameters(std::string_view function, Arguments& arguments) : function_(function), arguments_(arguments) {}
  /// TypeError if it was not given; lives as long as the arguments.
  const Value& required(std::string_view name);
  /// Null if it was not given.
  const Value* optional(std::string_view name);
  /// TypeError if anything is left.
  void end() const;

  // As the above, of a type; TypeError for others.
  const Text& text(std::string_view name);
  /// Null for none too.
  const Text* optional_text(std::string_view name);
  std::int64_t integer(std::string_view name);
  std::int64_t integer_or(std::string_view name, std::int64_t usual);
  bool flag_or(std::string_view name, bool usual);

 private:
  std::string_view function_;
  Arguments& arguments_;
  std::size_t next_ = 0;
  std::vector<bool> used_ = {};  // of the named ones
};

/// The value as a string, as print writes it.
Text as_str(Interpreter& vm, const Value& value);
/// Its characters: those of a string itself, or of its print form, kept in `storage`.
TextView str_view(Interpreter& vm, const Value& value, Text& storage);
/// An integer that fits 64 bits; TypeError naming `what` otherwise.
std::int64_t as_integer(const Value& value, std::string_view what);

}  // namespace quipu::jinja
