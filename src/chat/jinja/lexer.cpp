// The rules of Jinja 3.1's lexer. Names and numbers are ASCII.
#include <algorithm>
#include <array>
#include <optional>

#include "chat/jinja/token.h"
#include "vocab/utf8.h"

namespace quipu::jinja {

namespace {

// Longer ones first.
constexpr std::array<std::string_view, 24> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-",
                                                         "/",  "*",  "%",  "~",  "[",  "]",  "(", ")",
                                                         "{",  "}",  ">",  "<",  "=",  ".",  ":", "|"};

bool is_digit_byte(char c) {
  return c >= '0' && c <= '9';
}
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_space_byte(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

int digit_value(char c) {
  if (is_digit_byte(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> all() {
    while (at_ < source_.size()) root();
    tokens_.push_back({Token::Type::end, place(source_.size()), {}, {}});
    return std::move(tokens_);
  }

 private:
  static std::uint32_t place(std::size_t at) { return static_cast<std::uint32_t>(at); }
  [[noreturn]] static void fault(std::size_t at, std::string message) {
    throw SyntaxError{place(at), std::move(message)};
  }
  bool looking_at(std::string_view word, std::size_t at) const {
    return source_.substr(at).starts_with(word);
  }

  /// Text up to the next tag, and the tag.
  void root() {
    const std::size_t begin = at_;
    std::size_t tag = begin;
    while ((tag = source_.find('{', tag)) != std::string_view::npos) {
      const char kind = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
      if (kind == '{' || kind == '%' || kind == '#') break;
      ++tag;
    }
    if (tag == std::string_view::npos) {
      add_data(begin, source_.size());
      at_ = source_.size();
      return;
    }
    const char kind = source_[tag + 1];
    at_ = tag + 2;
    const char sign = take_sign();
    add_data(begin, stripped_end(begin, tag, sign, kind != '{'));
    if (kind == '#') {
      comment(tag);
    } else if (kind == '{') {
      tag_content(tag, Token::Type::variable_begin, Token::Type::variable_end, "}}");
    } else if (!raw(tag)) {
      tag_content(tag, Token::Type::block_begin, Token::Type::block_end, "%}");
    }
  }

  /// The sign behind the beginning of a tag, or 0.
  char take_sign() {
    const char c = at_ < source_.size() ? source_[at_] : '\0';
    if (c != '-' && c != '+') return '\0';
    ++at_;
    return c;
  }

  /// Where the text [begin, end) before a tag ends once its white space has gone where it should.
  std::size_t stripped_end(std::size_t begin, std::size_t end, char sign, bool may_strip_line) const {
    const auto strip_to = [&](std::size_t limit, bool stop_at_line) {
      std::size_t to = end;
      while (to > limit) {
        const std::size_t space = space_before(to);
        if (space == 0 || (stop_at_line && source_[to - 1] == '\n')) break;
        to -= space;
      }
      return std::max(to, limit);
    };
    if (sign == '-') return strip_to(begin, false);
    if (sign == '+' || !may_strip_line) return end;
    const std::size_t to = strip_to(begin, true);
    const bool begins_line = to > begin ? source_[to - 1] == '\n' : line_starting_;
    return begins_line ? to : end;
  }

  /// Bytes of the white space character that ends at `end`, or 0.
  std::size_t space_before(std::size_t end) const {
    std::size_t begin = end - 1;
    while (begin > 0 && end - begin < 4 && vocab::is_continuation(source_[begin])) --begin;
    const vocab::Utf8Prefix character = vocab::first_character(source_.substr(begin, end - begin));
    const bool whole =
        character.state == vocab::Utf8Prefix::State::complete && character.length == end - begin;
    return whole && is_space(character.code_point) ? character.length : 0;
  }
  void skip_space() {
    while (at_ < source_.size()) {
      const vocab::Utf8Prefix character = vocab::first_character(source_.substr(at_));
      if (character.state != vocab::Utf8Prefix::State::complete || !is_space(character.code_point)) return;
      at_ += character.length;
    }
  }

  void add_data(std::size_t begin, std::size_t end) {
    if (end <= begin) return;
    const std::string_view text = source_.substr(begin, end - begin);
    tokens_.push_back({Token::Type::data, place(begin), text, Value::text(from_utf8(text))});
  }

  /// What ends a tag, with the white space that goes with it; false if it is not here.
  bool take_end(std::string_view end, bool trim_line) {
    const std::size_t before = at_;
    const bool minus = looking_at("-", at_), plus = trim_line && looking_at("+", at_);
    if (minus || plus) ++at_;
    if (!looking_at(end, at_)) {
      at_ = before;
      return false;
    }
    at_ += end.size();
    if (minus) skip_space();
    if (!minus && !plus && trim_line && looking_at("\n", at_)) ++at_;
    line_starting_ = source_[at_ - 1] == '\n';
    return true;
  }

  void comment(std::size_t tag) {
    while (!take_end("#}", true)) {
      if (++at_ >= source_.size()) fault(tag, "missing end of comment");
    }
  }

  /// {% raw %} to {% endraw %}. False, and nothing taken, if it is another tag.
  bool raw(std::size_t tag) {
    const std::size_t before = at_;
    skip_space();
    const bool is_raw = looking_at("raw", at_);
    if (is_raw) at_ += 3;
    skip_space();
    if (!is_raw || !take_end("%}", false)) {
      at_ = before;
      return false;
    }
    const std::size_t begin = at_;
    for (std::size_t end = begin; (end = source_.find("{%", end)) != std::string_view::npos; end += 2) {
      at_ = end + 2;
      const char sign = take_sign();
      skip_space();
      if (!looking_at("endraw", at_)) continue;
      at_ += 6;
      skip_space();
      const std::size_t data_end = stripped_end(begin, end, sign, true);
      if (!take_end("%}", true)) continue;
      add_data(begin, data_end);
      return true;
    }
    fault(tag, "missing end of raw");
  }

  void tag_content(std::size_t tag, Token::Type begin, Token::Type end, std::string_view end_text) {
    tokens_.push_back({begin, place(tag), source_.substr(tag, 2), {}});
    std::vector<char> open;  // brackets that wait for their other half
    while (true) {
      const std::size_t at = at_;
      if (open.empty() && take_end(end_text, end == Token::Type::block_end)) {
        tokens_.push_back({end, place(at), source_.substr(at, end_text.size()), {}});
        return;
      }
      if (at_ >= source_.size()) fault(tag, "the tag does not end");
      word(open);
    }
  }

  void word(std::vector<char>& open) {
    const char c = source_[at_];
    if (is_space_byte(c)) {
      skip_space();
    } else if (begins_name(c)) {
      name();
    } else if (is_digit_byte(c)) {
      number();
    } else if (c == '"' || c == '\'') {
      string(c);
    } else {
      oper(open);
    }
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < source_.size() && (begins_name(source_[at_]) || is_digit_byte(source_[at_]))) ++at_;
    add(Token::Type::name, begin, {});
  }

  void add(Token::Type type, std::size_t begin, Value value) {
    tokens_.push_back({type, place(begin), source_.substr(begin, at_ - begin), std::move(value)});
  }

  /// Takes digits with single underscores between them.
  void take_digits(std::string& digits, int base) {
    while (at_ < source_.size()) {
      const bool underscore = source_[at_] == '_';
      const std::size_t digit = at_ + (underscore ? 1 : 0);
      if (digit >= source_.size() || digit_value(source_[digit]) >= base) return;
      digits.push_back(source_[digit]);
      at_ = digit + 1;
    }
  }

  void number() {
    const std::size_t begin = at_;
    std::string digits;
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';  // a.0.1 is no fraction
    const char prefix = source_[at_] == '0' && at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
    const int base = prefix == 'x' || prefix == 'X'   ? 16
                     : prefix == 'o' || prefix == 'O' ? 8
                     : prefix == 'b' || prefix == 'B' ? 2
                                                      : 10;
    if (base != 10) {
      at_ += 2;
      take_digits(digits, base);
      if (digits.empty()) at_ = begin + 1;
      return add(Token::Type::number, begin,
                 Value::integer(integer(digits.empty() ? "0" : digits, base, begin)));
    }
    take_digits(digits, 10);
    bool fraction = false;
    if (!after_dot && at_ + 1 < source_.size() && source_[at_] == '.' && is_digit_byte(source_[at_ + 1])) {
      digits.push_back('.');
      ++at_;
      take_digits(digits, 10);
      fraction = true;
    }
    fraction = (!after_dot && take_exponent(digits)) || fraction;
    const bool odd_zero = digits.front() == '0' && digits.find_first_not_of('0') != std::string::npos;
    if (!fraction && odd_zero) fault(begin, "a number begins with 0");
    if (!fraction) return add(Token::Type::number, begin, Value::integer(integer(digits, 10, begin)));
    add(Token::Type::number, begin, Value::Data(parse_decimal(digits).value_or(0)));
  }

  bool take_exponent(std::string& digits) {
    std::size_t at = at_;
    if (at >= source_.size() || (source_[at] != 'e' && source_[at] != 'E')) return false;
    ++at;
    const bool sign = at < source_.size() && (source_[at] == '-' || source_[at] == '+');
    const std::size_t first = at + (sign ? 1 : 0);
    if (first >= source_.size() || !is_digit_byte(source_[first])) return false;
    digits.push_back('e');
    if (sign) digits.push_back(source_[at]);
    at_ = first;
    take_digits(digits, 10);
    return true;
  }

  static Int integer(std::string_view digits, int base, std::size_t at) {
    Int value = 0;
    for (const char digit : digits) {
      if (__builtin_mul_overflow(value, Int(base), &value) ||
          __builtin_add_overflow(value, Int(digit_value(digit)), &value)) {
        fault(at, "the number is too large");
      }
    }
    return value;
  }

  void string(char quote) {
    const std::size_t begin = at_++;
    std::string bytes;  // unescaped
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
        escape(bytes);
      } else {
        bytes.push_back(source_[at_++]);
      }
    }
    if (at_ >= source_.size()) fault(begin, "the string does not end");
    ++at_;
    add(Token::Type::string, begin, Value::text(from_utf8(bytes)));
  }

  /// One escape of a string, by Python's rules: those it does not know stay as they are.
  void escape(std::string& bytes) {
    constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const std::size_t begin = at_;
    const char c = source_[at_ + 1];
    at_ += 2;
    if (c == '\n') return;
    if (const std::size_t i = kLetters.find(c); i != std::string_view::npos) {
      bytes.push_back(kMeanings[i]);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::optional<std::uint32_t> code = code_point(16, n);
      if (!code || at_ - begin != n + 2 || *code > 0x10FFFF) fault(begin, "the escape is no character");
      append_code_point(bytes, *code);
    } else if (c >= '0' && c <= '7') {
      --at_;
      append_code_point(bytes, code_point(8, 3).value_or(0));
    } else if (c == 'N') {
      fault(begin, "characters by name are not supported");
    } else {
      bytes.push_back('\\');
      bytes.push_back(c);
    }
  }

  static void append_code_point(std::string& bytes, std::uint32_t code) {
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;  // no character of UTF-8
    vocab::append_utf8(bytes, surrogate ? 0xFFFD : code);
  }

  std::optional<std::uint32_t> code_point(int base, std::size_t most) {
    std::optional<std::uint32_t> value;
    for (std::size_t i = 0; i < most && at_ < source_.size() && digit_value(source_[at_]) < base;
         ++i, ++at_) {
      value = value.value_or(0) * static_cast<std::uint32_t>(base) +
              static_cast<std::uint32_t>(digit_value(source_[at_]));
    }
    return value;
  }

  void oper(std::vector<char>& open) {
    const std::size_t begin = at_;
    const char c = source_[at_];
    if (c == ',') {
      ++at_;
      return add(Token::Type::op, begin, {});
    }
    const auto* found = std::find_if(kOperators.begin(), kOperators.end(),
                                     [&](std::string_view op) { return looking_at(op, at_); });
    if (found == kOperators.end()) fault(begin, "unexpected character");
    if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : static_cast<char>(c + 2));
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fault(begin, std::string("unexpected '") + c + "'");
      if (open.back() != c)
        fault(begin, std::string("unexpected '") + c + "', expected '" + open.back() + "'");
      open.pop_back();
    }
    at_ += found->size();
    add(Token::Type::op, begin, {});
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_starting_ = true;  // whether the text that comes begins a line
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).all();
}

}  // namespace quipu::jinja
