#include "chat/jinja/json.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace quipu::jinja {

namespace {

/// Builds values as the parser comes across them; a stack instead of recursion.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view what, Budget& budget) : what_(what), budget_(budget) {}
  Value result() { return std::move(result_); }

  bool null() override { return add(Value()); }
  bool boolean(bool value) override { return add(Value::boolean(value)); }
  bool number_integer(std::int64_t value) override { return add(Value::integer(value)); }
  bool number_unsigned(std::uint64_t value) override { return add(Value::integer(static_cast<Int>(value))); }
  bool number_float(double value, const std::string& text) override {
    return add(text.find_first_of(".eE") == std::string::npos ? large_integer(text) : Value::Data(value));
  }
  bool string(std::string& value) override { return add(Value::text(from_utf8(value, true))); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override { return close(); }
  bool key(std::string& value) override {
    levels_.back().key = Value::text(from_utf8(value, true));
    return true;
  }
  bool parse_error(std::size_t place, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string_view text = error.what();
    const std::size_t reason = text.find(": ");  // behind the library's own prefix
    fail(ErrorCode::invalid_argument, "{} is no JSON: byte {}: {}", what_, place,
         reason == std::string_view::npos ? text : text.substr(reason + 2));
  }

 private:
  struct Level {
    bool is_object = false;
    Value key = {};
    Dict dict = {};
    std::vector<Value> items = {};
  };

  bool open(bool is_object) {
    if (levels_.size() >= budget_.limits().value_depth) {
      fail(ErrorCode::invalid_argument, "{} is nested more than {} deep", what_,
           budget_.limits().value_depth);
    }
    levels_.push_back({is_object});
    return true;
  }
  bool close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    return add(level.is_object ? make_dict(std::move(level.dict))
                               : make_sequence(budget_, std::move(level.items)));
  }
  bool add(Value value) {
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (Level& level = levels_.back(); level.is_object) {
      level.dict.set(budget_, std::move(level.key), std::move(value));
    } else {
      level.items.push_back(std::move(value));
    }
    return true;
  }

  Value large_integer(const std::string& text) const {
    Int value = 0;
    const bool negative = text.starts_with('-');
    for (const char digit : std::string_view(text).substr(negative ? 1 : 0)) {
      if (__builtin_mul_overflow(value, Int(10), &value) ||
          __builtin_add_overflow(value, Int(digit - '0'), &value)) {
        fail(ErrorCode::invalid_argument, "{}: the integer {} is too large", what_, text.substr(0, 60));
      }
    }
    return Value::integer(negative ? -value : value);
  }

  std::string_view what_;
  Budget& budget_;
  std::vector<Level> levels_;
  Value result_;
};

}  // namespace

Value parse_json(std::string_view json, std::string_view what, const Limits& limits) {
  Limits own = limits;
  own.steps = own.memory = UINT64_MAX / 2;  // the text's size is the caller's affair
  Budget budget(own);
  Builder builder(what, budget);
  nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  return builder.result();
}

}  // namespace quipu::jinja
