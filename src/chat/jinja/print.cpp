#include "chat/jinja/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quipu::jinja {

namespace {

void append(Interpreter& vm, Text& out, std::string_view ascii) {
  vm.budget().text(ascii.size());
  append_ascii(out, ascii);
}

/// A character as an escape, with the mark of the character.
void append_escape(Text& out, Char c, std::string_view escape) {
  for (const char letter : escape) out.push_back(static_cast<unsigned char>(letter) | (c & kInputMark));
}

void append_string_repr(Interpreter& vm, Text& out, TextView text) {
  vm.budget().text(text.size() + 2);
  const bool single = contains(text, U'\''), twofold = contains(text, U'"');
  const Char quote = single && !twofold ? U'"' : U'\'';
  out.push_back(quote);
  for (const Char marked : text) {
    const Char c = plain(marked);
    if (c == quote || c == '\\') {
      append_escape(out, marked, c == '\\' ? "\\\\" : c == '"' ? "\\\"" : "\\'");
    } else if (c == '\n' || c == '\r' || c == '\t') {
      append_escape(out, marked, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (is_printable(c)) {
      out.push_back(marked);
    } else if (c < 0x100) {
      append_escape(out, marked, fmt::format("\\x{:02x}", static_cast<unsigned>(c)));
    } else {
      const auto code = static_cast<unsigned>(c);
      append_escape(out, marked,
                    code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code));
    }
  }
  out.push_back(quote);
}

void append_items(Interpreter& vm, Text& out, const std::vector<Value>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) append(vm, out, ", ");
    append_repr(vm, out, items[i]);
  }
}

void append_sequence(Interpreter& vm, Text& out, const Value& value, const Sequence& sequence) {
  if (sequence.type == Sequence::Type::list) {
    append(vm, out, "[");
    append_items(vm, out, sequence.items);
    append(vm, out, "]");
  } else if (sequence.type == Sequence::Type::tuple || sequence.type == Sequence::Type::group) {
    append(vm, out, "(");
    append_items(vm, out, sequence.items);
    append(vm, out, sequence.items.size() == 1 ? ",)" : ")");
  } else {
    append(vm, out, fmt::format("{}([", type_name(value)));
    append_items(vm, out, sequence.items);
    append(vm, out, "])");
  }
}

void append_dict(Interpreter& vm, Text& out, const Dict& dict) {
  append(vm, out, "{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) append(vm, out, ", ");
    first = false;
    append_repr(vm, out, key);
    append(vm, out, ": ");
    append_repr(vm, out, value);
  }
  append(vm, out, "}");
}

std::string range_repr(const Range& range) {
  if (range.step == 1) return fmt::format("range({}, {})", range.start, range.stop);
  return fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void append_str(Interpreter& vm, Text& out, const Value& value) {
  if (value.is_undefined()) return;
  if (const Text* text = value.as_text()) {
    vm.budget().text(text->size());
    out += *text;
  } else {
    append_repr(vm, out, value);
  }
}

void append_repr(Interpreter& vm, Text& out, const Value& value) {
  const Interpreter::Depth depth(vm);
  if (const Text* text = value.as_text()) {
    if (value.is_safe()) append(vm, out, "Markup(");
    append_string_repr(vm, out, *text);
    if (value.is_safe()) append(vm, out, ")");
    return;
  }
  if (const Sequence* sequence = value.as_sequence()) return append_sequence(vm, out, value, *sequence);
  if (const Dict* dict = value.as_dict()) return append_dict(vm, out, *dict);
  if (value.is_undefined()) return append(vm, out, "Undefined");
  if (value.is_none()) return append(vm, out, "None");
  if (const bool* b = value.get_if<bool>()) return append(vm, out, *b ? "True" : "False");
  if (const Int* i = value.get_if<Int>()) return append(vm, out, fmt::format("{}", *i));
  if (const double* x = value.get_if<double>()) return append(vm, out, float_repr(*x));
  if (const Range* range = value.get_if<Range>()) return append(vm, out, range_repr(*range));
  if (Namespace* const* space = value.get_if<Namespace*>()) {
    append(vm, out, "<Namespace ");
    append_dict(vm, out, (*space)->attributes);
    return append(vm, out, ">");
  }
  if (const Macro* const* macro = value.get_if<const Macro*>()) {
    return append(vm, out, fmt::format("<Macro '{}'>", (*macro)->definition->name));
  }
  if (const auto* loop = value.get_if<std::shared_ptr<Loop>>()) {
    return append(vm, out, fmt::format("<LoopContext {}/{}>", (*loop)->index + 1, (*loop)->elements.size()));
  }
  append(vm, out, fmt::format("<{} object>", type_name(value)));
}

// JSON, as json.dumps().

namespace {

class JsonWriter {
 public:
  JsonWriter(Interpreter& vm, Text& out, const JsonOptions& options)
      : vm_(vm), out_(out), options_(options) {}

  void value(const Value& value) {
    const Interpreter::Depth depth(vm_);
    if (const Text* text = value.as_text()) return string(*text);
    if (const Sequence* list = value.as_list()) return array(*list);
    if (const Dict* dict = value.as_dict()) return object(*dict);
    const std::optional<std::string> scalar = json_scalar(value);
    if (!scalar)
      fail(ErrorCode::invalid_argument, "Object of type {} is not JSON serializable", type_name(value));
    append(vm_, out_, *scalar);
  }

 private:
  static std::optional<std::string> json_scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* b = value.get_if<bool>()) return *b ? "true" : "false";
    if (const Int* i = value.get_if<Int>()) return fmt::format("{}", *i);
    const double* x = value.get_if<double>();
    if (x == nullptr) return std::nullopt;
    if (std::isnan(*x)) return "NaN";
    if (std::isinf(*x)) return *x < 0 ? "-Infinity" : "Infinity";
    return float_repr(*x);
  }

  void string(TextView text) {
    vm_.budget().text(text.size() + 2);
    out_.push_back(U'"');
    for (const Char marked : text) character(marked);
    out_.push_back(U'"');
  }

  void character(Char marked) {
    constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const Char c = plain(marked);
    const std::size_t special = c < 0x80 ? kSpecial.find(static_cast<char>(c)) : std::string_view::npos;
    if (special != std::string_view::npos) {
      append_escape(out_, marked, std::string{'\\', kLetters[special]});
    } else if (c >= 0x10000 && options_.ensure_ascii) {
      append_unit(marked, 0xD800 + ((c - 0x10000) >> 10));
      append_unit(marked, 0xDC00 + ((c - 0x10000) & 0x3FF));
    } else if (c < 0x20 || (c >= 0x7F && options_.ensure_ascii)) {
      append_unit(marked, c);
    } else {
      out_.push_back(marked);
    }
  }
  void append_unit(Char marked, Char unit) {
    vm_.budget().text(5);
    append_escape(out_, marked, fmt::format("\\u{:04x}", static_cast<unsigned>(unit)));
  }

  /// The line break before an element, or before the end.
  void line() {
    if (!options_.indent) return;
    vm_.budget().text(1 + level_ * options_.indent->size());
    out_.push_back(U'\n');
    for (std::size_t i = 0; i < level_; ++i) out_ += *options_.indent;
  }
  void separator(bool first) {
    vm_.budget().text(options_.item_separator.size());
    if (!first) out_ += options_.item_separator;
    line();
  }

  void array(const Sequence& list) {
    if (list.items.empty()) return append(vm_, out_, "[]");
    out_.push_back(U'[');
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      separator(i == 0);
      value(list.items[i]);
    }
    --level_;
    line();
    append(vm_, out_, "]");
  }

  void object(const Dict& dict) {
    if (dict.size() == 0) return append(vm_, out_, "{}");
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (options_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const Dict::Entry* a, const Dict::Entry* b) {
        return less(vm_.budget(), a->first, b->first);
      });
    }
    out_.push_back(U'{');
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      separator(i == 0);
      key(entries[i]->first);
      vm_.budget().text(options_.key_separator.size());
      out_ += options_.key_separator;
      value(entries[i]->second);
    }
    --level_;
    line();
    append(vm_, out_, "}");
  }

  void key(const Value& key) {
    if (const Text* text = key.as_text()) return string(*text);
    const std::optional<std::string> scalar = json_scalar(key);
    if (!scalar) {
      fail(ErrorCode::invalid_argument, "keys must be str, int, float, bool or None, not {}", type_name(key));
    }
    append(vm_, out_, "\"" + *scalar + "\"");
  }

  Interpreter& vm_;
  Text& out_;
  const JsonOptions& options_;
  std::size_t level_ = 0;
};

}  // namespace

void append_json(Interpreter& vm, Text& out, const Value& value, const JsonOptions& options) {
  JsonWriter(vm, out, options).value(value);
}

}  // namespace quipu::jinja
