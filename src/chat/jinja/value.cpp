#include "chat/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "chat/jinja/loop.h"

namespace quipu::jinja {

namespace {

constexpr std::size_t kIndexedSize = 16;  // smaller dictionaries are searched from the front

std::uint32_t deepest(const std::vector<Value>& items) {
  std::uint32_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return depth;
}

std::uint32_t nested(Budget& budget, std::uint32_t inner) {
  if (inner >= budget.limits().value_depth) {
    fail(ErrorCode::invalid_argument, "lists or dictionaries are nested more than {} deep",
         budget.limits().value_depth);
  }
  return inner + 1;
}

std::size_t hash_of(Budget& budget, const Value& value) {
  budget.steps(1);
  if (const Text* text = value.as_text()) return hash(*text);
  double number = 0;
  if (value.get_number(number)) return std::hash<double>()(number == 0 ? 0.0 : number);
  if (const Sequence* tuple = value.as_sequence()) {
    std::size_t result = 7;
    for (const Value& item : tuple->items) result = result * 31 + hash_of(budget, item);
    return result;
  }
  return value.data().index();
}

}  // namespace

std::uint64_t Range::size() const {
  const Int span = step > 0 ? Int(stop) - start : Int(start) - stop;
  const Int stride = step > 0 ? Int(step) : -Int(step);
  return span <= 0 ? 0 : static_cast<std::uint64_t>((span + stride - 1) / stride);
}

std::int64_t Range::at(std::uint64_t i) const {
  return static_cast<std::int64_t>(Int(start) + Int(step) * Int(i));
}

Value Value::undefined(std::string message) {
  return Data(std::make_shared<const Undefined>(Undefined{std::move(message)}));
}
Value Value::text(std::string_view ascii) {
  return text(from_utf8(ascii));
}

const Text* Value::as_text() const {
  const auto* string = get_if<std::shared_ptr<const String>>();
  return string == nullptr ? nullptr : &(*string)->text;
}
bool Value::is_safe() const {
  const auto* string = get_if<std::shared_ptr<const String>>();
  return string != nullptr && (*string)->safe;
}
const Sequence* Value::as_sequence() const {
  const auto* sequence = get_if<std::shared_ptr<const Sequence>>();
  return sequence == nullptr ? nullptr : sequence->get();
}
const Sequence* Value::as_list() const {
  const Sequence* sequence = as_sequence();
  return sequence != nullptr && sequence->type <= Sequence::Type::group ? sequence : nullptr;
}
const Dict* Value::as_dict() const {
  const auto* dict = get_if<std::shared_ptr<const Dict>>();
  return dict == nullptr ? nullptr : dict->get();
}

bool Value::get_int(Int& out) const {
  if (const Int* i = get_if<Int>()) {
    out = *i;
    return true;
  }
  if (const bool* b = get_if<bool>()) {
    out = *b ? 1 : 0;
    return true;
  }
  return false;
}

bool Value::get_number(double& out) const {
  if (const double* number = get_if<double>()) {
    out = *number;
    return true;
  }
  Int i = 0;
  if (!get_int(i)) return false;
  out = static_cast<double>(i);
  return true;
}

std::uint32_t Value::depth() const {
  if (const Sequence* sequence = as_sequence()) return sequence->depth;
  if (const Dict* dict = as_dict()) return dict->depth();
  if (const auto* iterator = get_if<std::shared_ptr<Iterator>>()) return (*iterator)->depth;
  if (const auto* loop = get_if<std::shared_ptr<Loop>>()) return (*loop)->depth_of_values;
  if (const auto* callable = get_if<std::shared_ptr<const Callable>>()) return (*callable)->depth;
  return 0;
}

Value make_sequence(Budget& budget, std::vector<Value> items, Sequence::Type type) {
  budget.steps(1 + items.size() / 4);
  budget.bytes(sizeof(Sequence) + items.size() * sizeof(Value));
  const std::uint32_t depth = nested(budget, deepest(items));
  const bool tuple = type == Sequence::Type::tuple || type == Sequence::Type::group;
  const bool is_hashable = tuple && std::all_of(items.begin(), items.end(), hashable);
  return Value::Data(std::make_shared<const Sequence>(Sequence{type, std::move(items), depth, is_hashable}));
}

Value make_iterator(Budget& budget, std::vector<Value> items, const char* type) {
  budget.steps(1 + items.size() / 4);
  budget.bytes(sizeof(Iterator) + items.size() * sizeof(Value));
  const std::uint32_t depth = nested(budget, deepest(items));
  return Value::Data(std::make_shared<Iterator>(Iterator{type, std::move(items), 0, depth}));
}

Value make_dict(Dict dict) {
  return Value::Data(std::make_shared<const Dict>(std::move(dict)));
}

std::size_t Dict::index_of(Budget& budget, const Value& key) const {
  if (entries_.size() <= kIndexedSize) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (jinja::equal(budget, entries_[i].first, key)) return i;
    }
    return entries_.size();
  }
  const auto [begin, end] = by_hash_.equal_range(hash_of(budget, key));
  for (auto it = begin; it != end; ++it) {
    if (jinja::equal(budget, entries_[it->second].first, key)) return it->second;
  }
  return entries_.size();
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  const std::size_t i = index_of(budget, key);
  return i < entries_.size() ? &entries_[i].second : nullptr;
}

const Value* Dict::find(std::string_view ascii_key) const {
  for (const auto& [key, value] : entries_) {
    const Text* text = key.as_text();
    if (text != nullptr && jinja::equal(*text, ascii_key)) return &value;
  }
  return nullptr;
}

void Dict::set(Budget& budget, Value key, Value value) {
  budget.steps(1);
  depth_ = std::max(depth_, nested(budget, std::max(key.depth(), value.depth())));
  const std::size_t i = index_of(budget, key);
  if (i < entries_.size()) {
    entries_[i].second = std::move(value);
    return;
  }
  budget.bytes(sizeof(Entry) + 64);  // with its place in the index
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() == kIndexedSize + 1) {
    for (std::size_t k = 0; k < entries_.size(); ++k) by_hash_.emplace(hash_of(budget, entries_[k].first), k);
  } else if (entries_.size() > kIndexedSize) {
    by_hash_.emplace(hash_of(budget, entries_.back().first), entries_.size() - 1);
  }
}

Elements::Elements(Budget& budget, const Value& value) : source_(value) {
  if (const auto* iterator = value.get_if<std::shared_ptr<Iterator>>()) {
    auto& items = (*iterator)->items;
    drained_.assign(items.begin() + static_cast<std::ptrdiff_t>((*iterator)->next), items.end());
    (*iterator)->next = items.size();
    size_ = drained_.size();
    budget.steps(1 + size_ / 4);
    return;
  }
  if (!possible(value)) fail(ErrorCode::invalid_argument, "'{}' object is not iterable", type_name(value));
  length_of(value, size_);
}

bool Elements::possible(const Value& value) {
  std::size_t length = 0;
  return value.get_if<std::shared_ptr<Iterator>>() != nullptr || length_of(value, length);
}

Value Elements::operator[](std::size_t i) const {
  if (!drained_.empty()) return drained_[i];
  if (const Sequence* sequence = source_.as_sequence()) return sequence->items[i];
  if (const Dict* dict = source_.as_dict()) return dict->entries()[i].first;
  if (const Text* text = source_.as_text()) return Value::text(Text(1, (*text)[i]));
  if (const Range* range = source_.get_if<Range>()) return Value::integer(range->at(i));
  return Value::undefined("no such element");
}

std::vector<Value> Elements::all(Budget& budget) const {
  budget.steps(1 + size_ / 4);
  budget.bytes(size_ * sizeof(Value) * (source_.as_text() != nullptr ? 3 : 1));
  std::vector<Value> result;
  result.reserve(size_);
  for (std::size_t i = 0; i < size_; ++i) result.push_back((*this)[i]);
  return result;
}

std::string_view type_name(const Value& value) {
  struct Namer {
    std::string_view operator()(const std::shared_ptr<const Undefined>&) const { return "Undefined"; }
    std::string_view operator()(None) const { return "NoneType"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(Int) const { return "int"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const std::shared_ptr<const String>&) const { return "str"; }
    std::string_view operator()(const Range&) const { return "range"; }
    std::string_view operator()(const std::shared_ptr<const Sequence>& sequence) const {
      switch (sequence->type) {
        case Sequence::Type::list: return "list";
        case Sequence::Type::tuple: return "tuple";
        case Sequence::Type::group: return "_GroupTuple";
        case Sequence::Type::keys: return "dict_keys";
        case Sequence::Type::values: return "dict_values";
        case Sequence::Type::items: return "dict_items";
      }
      return "list";
    }
    std::string_view operator()(const std::shared_ptr<const Dict>&) const { return "dict"; }
    std::string_view operator()(const std::shared_ptr<Iterator>& iterator) const { return iterator->type; }
    std::string_view operator()(const std::shared_ptr<Loop>&) const { return "LoopContext"; }
    std::string_view operator()(const std::shared_ptr<const Callable>&) const {
      return "builtin_function_or_method";
    }
    std::string_view operator()(Namespace*) const { return "Namespace"; }
    std::string_view operator()(const Macro*) const { return "Macro"; }
  };
  return std::visit(Namer{}, value.data());
}

bool length_of(const Value& value, std::size_t& length) {
  if (value.is_undefined()) {
    length = 0;
  } else if (const Text* text = value.as_text()) {
    length = text->size();
  } else if (const Sequence* sequence = value.as_sequence()) {
    length = sequence->items.size();
  } else if (const Dict* dict = value.as_dict()) {
    length = dict->size();
  } else if (const Range* range = value.get_if<Range>()) {
    length = range->size();
  } else if (const auto* loop = value.get_if<std::shared_ptr<Loop>>()) {
    length = (*loop)->elements.size();
  } else {
    return false;
  }
  return true;
}

bool truthy(const Value& value) {
  if (value.is_none()) return false;
  double number = 0;
  if (value.get_number(number)) return number != 0;
  std::size_t length = 1;
  length_of(value, length);
  return length != 0;
}

void require_defined(const Value& value) {
  if (const auto* undefined = value.get_if<std::shared_ptr<const Undefined>>()) {
    throw Error(ErrorCode::invalid_argument, (*undefined)->message);
  }
}

bool hashable(const Value& value) {
  const Sequence* sequence = value.as_sequence();
  return sequence == nullptr ? value.as_dict() == nullptr : sequence->hashable;
}

void require_hashable(const Value& value) {
  if (!hashable(value)) fail(ErrorCode::invalid_argument, "unhashable type: '{}'", type_name(value));
}

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  if (error != std::errc::result_out_of_range) return value;
  const bool tiny = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
  return std::copysign(tiny ? 0.0 : HUGE_VAL, text.front() == '-' ? -1.0 : 1.0);
}

namespace {

bool equal_sequences(Budget& budget, const Sequence& a, const Sequence& b) {
  const bool tuples = (a.type == Sequence::Type::tuple || a.type == Sequence::Type::group) &&
                      (b.type == Sequence::Type::tuple || b.type == Sequence::Type::group);
  if ((a.type != b.type && !tuples) || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(budget, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(budget, key);
    if (other == nullptr || !equal(budget, value, *other)) return false;
  }
  return true;
}

template <typename Pointer>
bool same_object(const Value& a, const Value& b) {
  return *a.get_if<Pointer>() == *b.get_if<Pointer>();
}

}  // namespace

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.steps(1);
  Int i = 0, j = 0;
  if (a.get_int(i) && b.get_int(j)) return i == j;
  double x = 0, y = 0;
  if (a.get_number(x)) return b.get_number(y) && x == y;
  if (a.data().index() != b.data().index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (const Text* text = a.as_text()) {
    budget.steps(text->size() / 16);
    return equal(*text, *b.as_text());
  }
  if (const Sequence* sequence = a.as_sequence()) {
    return sequence == b.as_sequence() || equal_sequences(budget, *sequence, *b.as_sequence());
  }
  if (const Dict* dict = a.as_dict()) return dict == b.as_dict() || equal_dicts(budget, *dict, *b.as_dict());
  if (const Range* range = a.get_if<Range>()) {
    const Range& other = *b.get_if<Range>();
    return range->size() == other.size() &&
           (range->size() == 0 ||
            (range->start == other.start && (range->size() == 1 || range->step == other.step)));
  }
  if (a.get_if<std::shared_ptr<Iterator>>() != nullptr) return same_object<std::shared_ptr<Iterator>>(a, b);
  if (a.get_if<std::shared_ptr<Loop>>() != nullptr) return same_object<std::shared_ptr<Loop>>(a, b);
  if (a.get_if<std::shared_ptr<const Callable>>() != nullptr) {
    return same_object<std::shared_ptr<const Callable>>(a, b);
  }
  if (a.get_if<Namespace*>() != nullptr) return same_object<Namespace*>(a, b);
  return same_object<const Macro*>(a, b);
}

int compare(Budget& budget, const Value& a, const Value& b, std::string_view op) {
  budget.steps(1);
  require_defined(a);
  require_defined(b);
  Int i = 0, j = 0;
  if (a.get_int(i) && b.get_int(j)) return i == j ? 0 : i < j ? -1 : 1;
  double x = 0, y = 0;
  if (a.get_number(x) && b.get_number(y)) {
    if (std::isnan(x) || std::isnan(y)) return 2;
    return x == y ? 0 : x < y ? -1 : 1;
  }
  if (a.as_text() != nullptr && b.as_text() != nullptr) {
    budget.steps(a.as_text()->size() / 16);
    return compare(*a.as_text(), *b.as_text());
  }
  const Sequence* s = a.as_list();
  const Sequence* t = b.as_list();
  if (s == nullptr || t == nullptr ||
      (s->type == Sequence::Type::list) != (t->type == Sequence::Type::list)) {
    fail(ErrorCode::invalid_argument, "'{}' not supported between instances of '{}' and '{}'", op,
         type_name(a), type_name(b));
  }
  const std::size_t n = std::min(s->items.size(), t->items.size());
  for (std::size_t k = 0; k < n; ++k) {
    if (!equal(budget, s->items[k], t->items[k])) return compare(budget, s->items[k], t->items[k], op);
  }
  return s->items.size() == t->items.size() ? 0 : s->items.size() < t->items.size() ? -1 : 1;
}

bool less(Budget& budget, const Value& a, const Value& b) {
  return compare(budget, a, b, "<") == -1;
}

}  // namespace quipu::jinja
