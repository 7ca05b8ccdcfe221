// The values of a template. Strings, lists and dictionaries are shared and never change (the sandbox of the
// reference forbids it as well), so they cannot contain themselves; what does change, namespaces, belongs to
// the run that made it and is referred to by plain pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/limits.h"
#include "chat/jinja/text.h"

namespace quipu::jinja {

class Interpreter;
class Value;
struct Arguments;

/// Wide enough for whatever JSON schemas hold (2^64 and a bit); arithmetic that leaves it is an error.
__extension__ using Int = __int128;
__extension__ using UnsignedInt = unsigned __int128;

struct Undefined {
  std::string message;  ///< what an attempt to use it says
};
struct None {};
struct Range {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;
  std::uint64_t size() const;
  std::int64_t at(std::uint64_t i) const;
};

struct String {
  Text text;
  /// Marked as needing no HTML escapes, as by the filter `safe`: what joins it later is escaped, as in the
  /// reference.
  bool safe = false;
};
struct Sequence;
class Dict;
struct Iterator;
struct Loop;
struct Callable;
struct Namespace;
class Macro;

class Value {
 public:
  using Data = std::variant<std::shared_ptr<const Undefined>, None, bool, Int, double,
                            std::shared_ptr<const String>, Range, std::shared_ptr<const Sequence>,
                            std::shared_ptr<const Dict>, std::shared_ptr<Iterator>, std::shared_ptr<Loop>,
                            std::shared_ptr<const Callable>, Namespace*, const Macro*>;

  Value() : data_(None{}) {}
  Value(Data data)
      : data_(std::move(data)) {}  // NOLINT(google-explicit-constructor): any alternative is a value
  static Value undefined(std::string message);
  static Value text(Text text, bool safe = false) {
    return Data(std::make_shared<const String>(String{std::move(text), safe}));
  }
  static Value text(std::string_view ascii);
  static Value integer(Int i) { return Data(i); }
  static Value boolean(bool b) { return Data(b); }

  const Data& data() const { return data_; }
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&data_);
  }

  bool is_undefined() const { return std::holds_alternative<std::shared_ptr<const Undefined>>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  // Null where it is something else.
  const Text* as_text() const;
  /// Of strings: String::safe.
  bool is_safe() const;
  const Sequence* as_sequence() const;
  /// Of Sequence::Type list or tuple.
  const Sequence* as_list() const;
  const Dict* as_dict() const;
  /// Integers and booleans, which count as 0 and 1.
  bool get_int(Int& out) const;
  /// Those and floating-point numbers.
  bool get_number(double& out) const;
  /// Lists and dictionaries inside each other, 0 for what holds nothing.
  std::uint32_t depth() const;

 private:
  Data data_;
};

/// Lists, tuples, and the views that a dictionary gives of itself.
struct Sequence {
  enum class Type { list, tuple, group, keys, values, items };  ///< group: what groupby makes of each group
  Type type = Type::list;
  std::vector<Value> items;
  std::uint32_t depth = 1;
  bool hashable = false;  ///< a tuple of what is hashable
};
/// Charged to `budget`, which refuses what is nested too deeply.
Value make_sequence(Budget& budget, std::vector<Value> items, Sequence::Type type = Sequence::Type::list);

/// Keys in the order they came. Keys are equal as values are, so 1, 1.0 and true are one.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  std::uint32_t depth() const { return depth_; }
  /// Null if there is none. The key must be hashable.
  const Value* find(Budget& budget, const Value& key) const;
  const Value* find(std::string_view ascii_key) const;
  /// Adds or replaces; a key that is replaced keeps its place. The key must be hashable.
  void set(Budget& budget, Value key, Value value);

 private:
  std::size_t index_of(Budget& budget, const Value& key) const;

  std::vector<Entry> entries_;
  std::unordered_multimap<std::size_t, std::size_t> by_hash_;  // filled for large ones
  std::uint32_t depth_ = 1;
};
Value make_dict(Dict dict);

/// What is gone through once: the results of map, select and their like, computed when they are made.
struct Iterator {
  const char* type = "generator";
  std::vector<Value> items;
  std::size_t next = 0;
  std::uint32_t depth = 1;
};
Value make_iterator(Budget& budget, std::vector<Value> items, const char* type = "generator");

struct Namespace {
  Dict attributes;
};

/// A built-in function, or a method with the object it was taken from.
struct Callable {
  std::string name;
  std::function<Value(Interpreter&, Arguments&)> call;
  std::uint32_t depth = 0;  ///< of the object
};

/// The elements of a value that can be gone through, made as they are asked for.
class Elements {
 public:
  Elements() = default;
  /// Drains iterators. Throws a TypeError of Python's for what cannot be iterated.
  Elements(Budget& budget, const Value& value);
  static bool possible(const Value& value);

  std::size_t size() const { return size_; }
  Value operator[](std::size_t i) const;
  std::vector<Value> all(Budget& budget) const;

 private:
  Value source_;
  std::vector<Value> drained_;
  std::size_t size_ = 0;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Python's view of values.
/// "str", "dict" ...
std::string_view type_name(const Value& value);
bool truthy(const Value& value);
/// Never fails for comparable or incomparable types alike.
bool equal(Budget& budget, const Value& a, const Value& b);
/// -1, 0, 1, or 2 if a NaN is involved; TypeError naming `op` for types without an order.
int compare(Budget& budget, const Value& a, const Value& b, std::string_view op);
bool less(Budget& budget, const Value& a, const Value& b);
bool hashable(const Value& value);
void require_hashable(const Value& value);
/// Undefined values say what is undefined.
void require_defined(const Value& value);
/// A decimal number, as a whole; infinite or zero where it is too large or small. Nothing for other text.
std::optional<double> parse_decimal(std::string_view text);
/// False if it has no length.
bool length_of(const Value& value, std::size_t& length);

}  // namespace quipu::jinja
