#include "chat/jinja/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/jinja/access.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/print.h"
#include "chat/jinja/strings.h"

namespace quipu::jinja {

namespace {

constexpr std::int64_t kMaxWidth = 100'000;
constexpr int kMaxPrecision = 300;

/// The parts of a conversion that both ways share.
struct Spec {
  Char fill = U' ';
  Char align = 0;  // < > ^ =, or 0: the type's own
  Char sign = 0;   // + or space
  bool alternate = false;
  bool comma = false;
  std::int64_t width = 0;
  std::optional<int> precision;
  char type = 0;
};

bool take_number(TextView text, std::size_t& at, std::int64_t& number) {
  const std::size_t begin = at;
  for (number = 0; at < text.size() && plain(text[at]) >= '0' && plain(text[at]) <= '9'; ++at) {
    number = number * 10 + (plain(text[at]) - '0');
    if (number > kMaxWidth) fail(ErrorCode::invalid_argument, "the format's numbers are too large");
  }
  return at > begin;
}

Text padded(Interpreter& vm, Text text, const Spec& spec, Char usual_align) {
  const auto size = static_cast<std::int64_t>(text.size());
  if (size >= spec.width) return text;
  vm.budget().text(static_cast<std::uint64_t>(spec.width));
  const auto missing = static_cast<std::size_t>(spec.width - size);
  const Char align = spec.align != 0 ? spec.align : usual_align;
  std::size_t before = align == U'<' ? 0 : align == U'^' ? missing / 2 : missing;
  std::size_t signs = 0;
  if (align == U'=' && !text.empty() && (text[0] == U'-' || text[0] == U'+' || text[0] == U' ')) signs = 1;
  if (align == U'=') before = missing;
  text.insert(signs, Text(before, spec.fill));
  text.append(missing - before, spec.fill);
  return text;
}

std::string with_sign(std::string digits, bool negative, const Spec& spec) {
  if (negative) return fmt::format("-{}", digits);
  if (spec.sign == U'+') return fmt::format("+{}", digits);
  return spec.sign == U' ' ? fmt::format(" {}", digits) : digits;
}

std::string with_commas(std::string digits) {
  const std::size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t at = end; at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string integer_digits(Int value, const Spec& spec) {
  const bool negative = value < 0;
  const auto bits = static_cast<UnsignedInt>(value);
  const UnsignedInt magnitude = negative ? UnsignedInt(0) - bits : bits;
  std::string digits;
  switch (spec.type) {
    case 'x': digits = fmt::format("{:x}", magnitude); break;
    case 'X': digits = fmt::format("{:X}", magnitude); break;
    case 'o': digits = fmt::format("{:o}", magnitude); break;
    case 'b': digits = fmt::format("{:b}", magnitude); break;
    default: digits = fmt::format("{}", magnitude);
  }
  if (spec.comma) digits = with_commas(std::move(digits));
  const bool based = spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b';
  if (spec.alternate && based) digits = fmt::format("0{}{}", spec.type, digits);
  return with_sign(std::move(digits), negative, spec);
}

std::string float_digits(double value, const Spec& spec) {
  const bool negative = std::signbit(value);
  const double magnitude = std::abs(value);
  const int precision = std::min(spec.precision.value_or(6), kMaxPrecision);
  std::string digits;
  switch (spec.type) {
    case 'e': digits = fmt::format("{:.{}e}", magnitude, precision); break;
    case 'E': digits = fmt::format("{:.{}E}", magnitude, precision); break;
    case 'g': digits = fmt::format("{:.{}g}", magnitude, std::max(precision, 1)); break;
    case 'G': digits = fmt::format("{:.{}G}", magnitude, std::max(precision, 1)); break;
    case '%': digits = fmt::format("{:.{}f}%", magnitude * 100, precision); break;
    case 0:
      digits =
          spec.precision ? fmt::format("{:.{}g}", magnitude, std::max(precision, 1)) : float_repr(magnitude);
      break;
    default: digits = fmt::format("{:.{}f}", magnitude, precision);
  }
  if (spec.comma) digits = with_commas(std::move(digits));
  return with_sign(std::move(digits), negative && value == value, spec);
}

Text text_of(std::string_view ascii) {
  return from_utf8(ascii);
}

/// Of "%": flags, width, precision, and the letter.
class PercentFormatter {
 public:
  PercentFormatter(Interpreter& vm, TextView format, const Value& values, bool safe)
      : vm_(vm), format_(format), values_(values), safe_(safe), dict_(values.as_dict()) {
    const Sequence* sequence = values.as_sequence();
    if (sequence != nullptr && sequence->type == Sequence::Type::tuple) tuple_ = sequence;
  }

  Text all() {
    Text out;
    while (at_ < format_.size()) {
      if (plain(format_[at_]) != '%') {
        vm_.budget().text(1);
        out.push_back(format_[at_++]);
      } else {
        ++at_;
        out += conversion();
      }
    }
    const std::size_t given = tuple_ != nullptr ? tuple_->items.size() : 1;
    if (used_ < given && dict_ == nullptr) {
      fail(ErrorCode::invalid_argument, "not all arguments converted during string formatting");
    }
    return out;
  }

 private:
  const Value& next_value() {
    const std::size_t given = tuple_ != nullptr ? tuple_->items.size() : 1;
    if (used_ >= given) fail(ErrorCode::invalid_argument, "not enough arguments for format string");
    return tuple_ != nullptr ? tuple_->items[used_++] : (++used_, values_);
  }

  Char peek() const {
    if (at_ >= format_.size()) fail(ErrorCode::invalid_argument, "incomplete format");
    return plain(format_[at_]);
  }

  Text conversion() {
    std::optional<Value> named;
    if (peek() == '(') {
      const std::size_t end = find(format_, U")", at_);
      if (end == TextView::npos) fail(ErrorCode::invalid_argument, "incomplete format key");
      if (dict_ == nullptr) fail(ErrorCode::invalid_argument, "format requires a mapping");
      const Value key = Value::text(Text(format_.substr(at_ + 1, end - at_ - 1)));
      const Value* value = dict_->find(vm_.budget(), key);
      if (value == nullptr) fail(ErrorCode::invalid_argument, "'{}'", bytes_of(*key.as_text()));
      named = *value;
      at_ = end + 1;
    }
    Spec spec;
    flags(spec);
    if (peek() == '*') {
      ++at_;
      spec.width = std::min(as_integer(next_value(), "width"), kMaxWidth);
    } else {
      take_number(format_, at_, spec.width);
    }
    if (at_ < format_.size() && plain(format_[at_]) == '.') {
      ++at_;
      std::int64_t precision = 0;
      take_number(format_, at_, precision);
      spec.precision = static_cast<int>(precision);
    }
    const Char letter = peek();
    ++at_;
    if (letter == '%') return U"%";
    const Value value = named ? *named : next_value();
    return padded(vm_, converted(letter, value, spec), spec, U'>');
  }

  void flags(Spec& spec) {
    for (;; ++at_) {
      switch (peek()) {
        case '-': spec.align = U'<'; break;
        case '0':
          spec.fill = spec.align == 0 ? U'0' : U' ';
          if (spec.align == 0) spec.align = U'=';
          break;
        case '+': spec.sign = U'+'; break;
        case ' ': spec.sign = spec.sign == 0 ? U' ' : spec.sign; break;
        case '#': spec.alternate = true; break;
        default: return;
      }
    }
  }

  Text converted(Char letter, const Value& value, Spec& spec) {
    spec.type = letter < 0x80 ? static_cast<char>(letter) : '?';
    Text text;
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a':
        if (spec.type == 's') append_str(vm_, text, value);
        if (spec.type != 's') append_repr(vm_, text, value);
        if (safe_ && !value.is_safe()) text = html_escaped(text);
        if (spec.precision) text = text.substr(0, static_cast<std::size_t>(*spec.precision));
        if (spec.align == U'=') spec.align = 0;
        return text;
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o': return text_of(integer_digits(integer(value, spec.type), spec));
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        double number = 0;
        require_defined(value);
        if (!value.get_number(number)) {
          fail(ErrorCode::invalid_argument, "must be real number, not {}", type_name(value));
        }
        return text_of(float_digits(number, spec));
      }
      case 'c': {
        Int code = 0;
        if (const Text* one = value.as_text(); one != nullptr && one->size() == 1) return *one;
        if (value.get_int(code) && code >= 0 && code < 0xD800) return Text(1, static_cast<Char>(code));
        fail(ErrorCode::invalid_argument, "%c requires int or char");
      }
      default: break;
    }
    fail(ErrorCode::invalid_argument, "unsupported format character '{}'", bytes_of(Text(1, letter)));
  }

  static Int integer(const Value& value, char letter) {
    require_defined(value);
    Int i = 0;
    if (value.get_int(i)) return i;
    const double* x = value.get_if<double>();
    if (x != nullptr && std::abs(*x) < 1e18 && letter != 'x' && letter != 'X' && letter != 'o') {
      return static_cast<Int>(*x);
    }
    fail(ErrorCode::invalid_argument, "%{} format: a real number is required, not {}", letter,
         type_name(value));
  }

  Interpreter& vm_;
  TextView format_;
  const Value& values_;
  bool safe_;
  const Dict* dict_;
  const Sequence* tuple_ = nullptr;
  std::size_t used_ = 0;
  std::size_t at_ = 0;
};

/// Of "{}": fields with attributes and keys, conversions, and the specification's own little language.
class BraceFormatter {
 public:
  BraceFormatter(Interpreter& vm, const Arguments& arguments, bool safe)
      : vm_(vm), arguments_(arguments), safe_(safe) {}

  Text all(TextView format, int nesting = 0) {
    if (nesting > 2) fail(ErrorCode::invalid_argument, "Max string recursion exceeded");
    Text out;
    for (std::size_t at = 0; at < format.size();) {
      const Char c = plain(format[at]);
      const bool twice = at + 1 < format.size() && plain(format[at + 1]) == c;
      if ((c == '{' || c == '}') && twice) {
        out.push_back(c);
        at += 2;
      } else if (c == '{') {
        const std::size_t end = field_end(format, at);
        out += field(format.substr(at + 1, end - at - 1), nesting);
        at = end + 1;
      } else if (c == '}') {
        fail(ErrorCode::invalid_argument, "Single '}}' encountered in format string");
      } else {
        vm_.budget().text(1);
        out.push_back(format[at++]);
      }
    }
    return out;
  }

 private:
  static std::size_t field_end(TextView format, std::size_t begin) {
    int open = 0;
    for (std::size_t at = begin; at < format.size(); ++at) {
      if (plain(format[at]) == '{') ++open;
      if (plain(format[at]) == '}' && --open == 0) return at;
    }
    fail(ErrorCode::invalid_argument, "expected '}}' before end of string");
  }

  Text field(TextView text, int nesting) {
    const std::size_t name_end = std::min(find_any(text, U"!:"), text.size());
    const Value value = named(text.substr(0, name_end));
    TextView rest = text.substr(name_end);
    Char conversion = 0;
    if (!rest.empty() && plain(rest[0]) == '!') {
      if (rest.size() < 2)
        fail(ErrorCode::invalid_argument, "end of string while looking for conversion specifier");
      conversion = plain(rest[1]);
      rest.remove_prefix(2);
    }
    if (!rest.empty()) rest.remove_prefix(1);
    const Text spec_text = all(rest, nesting + 1);
    Text shown;
    if (conversion == 'r' || conversion == 'a') append_repr(vm_, shown, value);
    if (conversion == 's') append_str(vm_, shown, value);
    return formatted(conversion == 0 ? value : Value::text(std::move(shown)), parse_spec(spec_text));
  }

  Value named(TextView name) {
    const std::size_t first_end = std::min(find_any(name, U".["), name.size());
    const TextView first = name.substr(0, first_end);
    Value value = argument(first);
    for (std::size_t at = first_end; at < name.size();) {
      const bool attribute_name = plain(name[at]) == '.';
      const std::size_t end = attribute_name ? std::min(find_any(name, U".[", at + 1), name.size())
                                             : std::min(find(name, U"]", at), name.size());
      const TextView part = name.substr(at + 1, end - at - 1);
      if (attribute_name) {
        value = attribute(vm_, value, bytes_of(part));
      } else {
        std::int64_t index = 0;
        std::size_t digits = 0;
        const bool number = take_number(part, digits, index) && digits == part.size();
        value = subscript(vm_, value, number ? Value::integer(index) : Value::text(Text(part)));
      }
      at = end + (attribute_name ? 0 : 1);
    }
    return value;
  }

  Value argument(TextView name) {
    std::int64_t index = 0;
    std::size_t digits = 0;
    const bool number = take_number(name, digits, index) && digits == name.size();
    if (name.empty()) index = static_cast<std::int64_t>(automatic_++);
    if (name.empty() || number) {
      if (static_cast<std::size_t>(index) >= arguments_.positional.size()) {
        fail(ErrorCode::invalid_argument, "Replacement index {} out of range for positional args tuple",
             index);
      }
      return arguments_.positional[static_cast<std::size_t>(index)];
    }
    const std::string wanted = bytes_of(name);
    for (const auto& [key, value] : arguments_.named) {
      if (key == wanted) return value;
    }
    fail(ErrorCode::invalid_argument, "'{}'", wanted);
  }

  static Spec parse_spec(TextView text) {
    Spec spec;
    std::size_t at = 0;
    const auto is_align = [&](std::size_t i) { return i < text.size() && contains(U"<>^=", text[i]); };
    if (is_align(1)) {
      spec.fill = text[0];
      spec.align = plain(text[1]);
      at = 2;
    } else if (is_align(0)) {
      spec.align = plain(text[0]);
      at = 1;
    }
    const auto take = [&](Char c) { return at < text.size() && plain(text[at]) == c ? (++at, true) : false; };
    if (take('+')) spec.sign = U'+';
    if (take('-')) spec.sign = 0;
    if (take(' ')) spec.sign = U' ';
    spec.alternate = take('#');
    if (take('0') && spec.align == 0) {
      spec.fill = U'0';
      spec.align = U'=';
    }
    take_number(text, at, spec.width);
    spec.comma = take(',');
    std::int64_t precision = 0;
    if (take('.') && take_number(text, at, precision)) spec.precision = static_cast<int>(precision);
    if (at < text.size() && plain(text[at]) < 0x80) spec.type = static_cast<char>(plain(text[at++]));
    if (at < text.size()) fail(ErrorCode::invalid_argument, "Invalid format specifier");
    return spec;
  }

  Text formatted(const Value& value, Spec spec) {
    Int i = 0;
    double x = 0;
    const bool is_bool = value.get_if<bool>() != nullptr && spec.type == 0;
    const bool wants_float =
        spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
    if (!is_bool && value.get_int(i) && !wants_float) {
      if (spec.type != 0 && std::string_view("bdoxXn").find(spec.type) == std::string_view::npos)
        unknown(spec, value);
      return padded(vm_, text_of(integer_digits(i, spec)), spec, U'>');
    }
    if (!is_bool && value.get_number(x)) return padded(vm_, text_of(float_digits(x, spec)), spec, U'>');
    if (spec.type != 0 && spec.type != 's') unknown(spec, value);
    Text text;
    append_str(vm_, text, value);
    if (spec.precision) text = text.substr(0, static_cast<std::size_t>(*spec.precision));
    if (safe_ && !value.is_safe()) text = html_escaped(text);
    if (spec.align == U'=') spec.align = U'<';
    return padded(vm_, std::move(text), spec, U'<');
  }

  [[noreturn]] static void unknown(const Spec& spec, const Value& value) {
    fail(ErrorCode::invalid_argument, "Unknown format code '{}' for object of type '{}'", spec.type,
         type_name(value));
  }

  Interpreter& vm_;
  const Arguments& arguments_;
  bool safe_;
  std::size_t automatic_ = 0;
};

}  // namespace

Value percent_format(Interpreter& vm, TextView format, const Value& values, bool safe) {
  return vm.text(PercentFormatter(vm, format, values, safe).all(), safe);
}

Value brace_format(Interpreter& vm, TextView format, const Arguments& arguments, bool safe) {
  return vm.text(BraceFormatter(vm, arguments, safe).all(format), safe);
}

}  // namespace quipu::jinja
