// The parser. Every count is held against the bytes that are left before anything is allocated for it: no
// count can cost more than a fixed multiple of the file's size.
#include "gguf/header.h"

#include <array>
#include <bit>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/display.h"
#include "gguf/layout.h"

namespace quipu::gguf {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;                        // "GGUF"
constexpr std::uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;             // length, key, type, value
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // length, name, n_dims, dim, type, offset

class Parser {
 public:
  Parser(ByteCursor& cursor, const std::string& origin) : cursor_(cursor), origin_(origin) {}

  Header parse();

 private:
  void parse_version();
  std::uint64_t parse_count(std::string_view what, std::uint64_t least_bytes);
  void parse_key();
  Value parse_value(std::uint32_t type);
  Array parse_array();
  TensorInfo parse_tensor();
  ElementType parse_element_type();
  void place_tensors();

  void enter(std::string_view kind, std::uint64_t number, std::uint64_t count);
  std::string where() const;
  std::string parse_string(std::string_view what);
  std::vector<Bool> parse_bools(std::uint64_t count);
  template <typename T>
  T number();
  template <typename T>
  std::vector<T> numbers(std::uint64_t count);
  void need(std::uint64_t count, std::uint64_t bytes_each, std::string_view what) const;

  template <typename... Args>
  [[noreturn]] void fault(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    fail(code, "{}: {}{}", origin_, where(), fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fault_short() const {
    fault(ErrorCode::bad_file, "out of file bounds at byte {} of {}: is the file cut short?",
          cursor_.position(), cursor_.size());
  }

  ByteCursor& cursor_;
  const std::string& origin_;
  // What is being parsed, for messages: item number_ of count_, and its name once that is known.
  std::string_view kind_;
  std::uint64_t number_ = 0;
  std::uint64_t count_ = 0;
  std::string name_;
  Header header_;
};

Header Parser::parse() {
  header_.metadata = Metadata(origin_);
  parse_version();
  const std::uint64_t n_tensors = parse_count("tensors", kLeastTensorBytes);
  const std::uint64_t n_keys = parse_count("keys", kLeastKeyBytes);
  header_.metadata.reserve(n_keys);
  for (std::uint64_t i = 0; i < n_keys; ++i) {
    enter("key", i + 1, n_keys);
    parse_key();
  }
  header_.alignment = alignment_of(header_.metadata, ErrorCode::bad_file);
  enter({}, 0, 0);
  need(n_tensors, kLeastTensorBytes, "tensors");
  header_.tensors.reserve(n_tensors);
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    enter("tensor", i + 1, n_tensors);
    header_.tensors.push_back(parse_tensor());
  }
  place_tensors();
  return std::move(header_);
}

void Parser::enter(std::string_view kind, std::uint64_t number, std::uint64_t count) {
  kind_ = kind;
  number_ = number;
  count_ = count;
  name_.clear();
}

/// Only made when something is wrong: most files have hundreds of thousands of strings and nothing to say on
/// them.
std::string Parser::where() const {
  if (kind_.empty()) return {};
  if (name_.empty()) return fmt::format("{} {} of {}: ", kind_, number_, count_);
  return fmt::format("{} '{}': ", kind_, printable(name_));
}

void Parser::parse_version() {
  std::array<char, 4> magic{};
  if (!cursor_.read(std::as_writable_bytes(std::span(magic)))) {
    fault(ErrorCode::bad_file, "not a GGUF file: only {} bytes long", cursor_.size());
  }
  if (std::bit_cast<std::uint32_t>(magic) != kMagic) {
    fault(ErrorCode::bad_file, "not a GGUF file: it begins with '{}'",
          printable({magic.data(), magic.size()}));
  }
  const auto version = number<std::uint32_t>();
  if (version != 0 && (version & 0xffffu) == 0) {
    fault(ErrorCode::unsupported, "a big-endian GGUF file; only little-endian ones can be read");
  }
  if (version == 1) {
    fault(ErrorCode::unsupported, "GGUF version 1 is obsolete; convert the model again to get version 3");
  }
  if (version != 2 && version != 3) {
    fault(ErrorCode::unsupported, "GGUF version {}; only 2 and 3 can be read", version);
  }
  header_.version = version;
}

std::uint64_t Parser::parse_count(std::string_view what, std::uint64_t least_bytes) {
  const auto count = number<std::uint64_t>();
  need(count, least_bytes, what);
  if (count > NameIndex::kMaxNames) fault(ErrorCode::unsupported, "{} {} are too many", count, what);
  return count;
}

void Parser::parse_key() {
  std::string key = parse_string("its name");
  if (key.empty()) fault(ErrorCode::bad_file, "its name is empty");
  if (key.size() > kMaxKeyBytes)
    fault(ErrorCode::bad_file, "its name has {} bytes, over {}", key.size(), kMaxKeyBytes);
  name_ = key;
  if (header_.metadata.contains(key)) fault(ErrorCode::bad_file, "occurs twice");
  const auto type = number<std::uint32_t>();
  header_.metadata.set(std::move(key), parse_value(type));
}

Value Parser::parse_value(std::uint32_t type) {
  switch (static_cast<ValueType>(type)) {
    case ValueType::u8: return number<std::uint8_t>();
    case ValueType::i8: return number<std::int8_t>();
    case ValueType::u16: return number<std::uint16_t>();
    case ValueType::i16: return number<std::int16_t>();
    case ValueType::u32: return number<std::uint32_t>();
    case ValueType::i32: return number<std::int32_t>();
    case ValueType::f32: return number<float>();
    case ValueType::boolean: return parse_bools(1).front().value;
    case ValueType::string: return parse_string("its value");
    case ValueType::array: return parse_array();
    case ValueType::u64: return number<std::uint64_t>();
    case ValueType::i64: return number<std::int64_t>();
    case ValueType::f64: return number<double>();
  }
  fault(ErrorCode::bad_file, "unknown value type {}", type);
}

Array Parser::parse_array() {
  const auto type = number<std::uint32_t>();
  const auto count = number<std::uint64_t>();
  switch (static_cast<ValueType>(type)) {
    case ValueType::u8: return numbers<std::uint8_t>(count);
    case ValueType::i8: return numbers<std::int8_t>(count);
    case ValueType::u16: return numbers<std::uint16_t>(count);
    case ValueType::i16: return numbers<std::int16_t>(count);
    case ValueType::u32: return numbers<std::uint32_t>(count);
    case ValueType::i32: return numbers<std::int32_t>(count);
    case ValueType::f32: return numbers<float>(count);
    case ValueType::boolean: return parse_bools(count);
    case ValueType::string: {
      need(count, 8, "strings");
      std::vector<std::string> strings;
      strings.reserve(count);
      for (std::uint64_t i = 0; i < count; ++i) strings.push_back(parse_string("one of its strings"));
      return strings;
    }
    case ValueType::array: fault(ErrorCode::unsupported, "an array of arrays, which cannot be read");
    case ValueType::u64: return numbers<std::uint64_t>(count);
    case ValueType::i64: return numbers<std::int64_t>(count);
    case ValueType::f64: return numbers<double>(count);
  }
  fault(ErrorCode::bad_file, "an array of unknown value type {}", type);
}

TensorInfo Parser::parse_tensor() {
  TensorInfo tensor;
  tensor.name = parse_string("its name");
  if (tensor.name.empty()) fault(ErrorCode::bad_file, "its name is empty");
  name_ = tensor.name;
  const auto n_dims = number<std::uint32_t>();
  if (n_dims == 0 || n_dims > kMaxDims) {
    fault(ErrorCode::bad_file, "{} dimensions, where 1 to {} are possible", n_dims, kMaxDims);
  }
  tensor.dims = numbers<std::uint64_t>(n_dims);
  tensor.type = parse_element_type();
  const TensorSize size = tensor_size(tensor.type, tensor.dims, ErrorCode::bad_file, origin_, tensor.name);
  tensor.n_elements = size.n_elements;
  tensor.bytes = size.bytes;
  tensor.offset = number<std::uint64_t>();
  if (tensor.offset % header_.alignment != 0) {
    fault(ErrorCode::bad_file, "data offset {} is not a multiple of the alignment {}", tensor.offset,
          header_.alignment);
  }
  return tensor;
}

ElementType Parser::parse_element_type() {
  const auto type = number<std::uint32_t>();
  if (const auto known = element_type_from_number(type)) return *known;
  const std::string_view foreign = foreign_type_name(type);
  if (foreign.empty()) fault(ErrorCode::bad_file, "unknown element type {}", type);
  fault(ErrorCode::unsupported, "element type {} is not supported", foreign);
}

/// Makes the offsets absolute and checks where the data lies.
void Parser::place_tensors() {
  if (header_.tensors.empty()) return;
  const auto start = checked_round_up<std::uint64_t>(cursor_.position(), header_.alignment);
  for (TensorInfo& tensor : header_.tensors) {
    const auto offset = start ? checked_add(*start, tensor.offset) : std::nullopt;
    if (!offset) {
      name_ = tensor.name;
      fault(ErrorCode::bad_file, "data offset {} is out of file bounds", tensor.offset);
    }
    tensor.offset = *offset;
  }
  check_ranges(header_.tensors, header_.alignment, cursor_.size(), origin_);
}

std::string Parser::parse_string(std::string_view what) {
  const auto length = number<std::uint64_t>();
  if (length > cursor_.remaining()) {
    fault(ErrorCode::bad_file,
          "{} of {} bytes is out of file bounds at byte {} of {}: is the file cut short?", what, length,
          cursor_.position(), cursor_.size());
  }
  std::string text(length, '\0');
  if (!cursor_.read(std::as_writable_bytes(std::span(text)))) fault_short();
  return text;
}

std::vector<Bool> Parser::parse_bools(std::uint64_t count) {
  const std::vector<std::uint8_t> bytes = numbers<std::uint8_t>(count);
  std::vector<Bool> bools;
  bools.reserve(bytes.size());
  for (const std::uint8_t byte : bytes) {
    if (byte > 1) fault(ErrorCode::bad_file, "a bool is stored as {}, where 0 or 1 are possible", byte);
    bools.push_back({byte == 1});
  }
  return bools;
}

template <typename T>
T Parser::number() {
  if (const auto value = cursor_.read_number<T>()) return *value;
  fault_short();
}

template <typename T>
std::vector<T> Parser::numbers(std::uint64_t count) {
  need(count, sizeof(T), "elements");
  std::vector<T> values(count);
  if (!cursor_.read(std::as_writable_bytes(std::span(values)))) fault_short();
  return values;
}

/// Fails unless `count` things of at least `bytes_each` can still follow.
void Parser::need(std::uint64_t count, std::uint64_t bytes_each, std::string_view what) const {
  if (count <= cursor_.remaining() / bytes_each) return;
  fault(ErrorCode::bad_file, "{} {} are out of file bounds at byte {} of {}: is the file cut short?", count,
        what, cursor_.position(), cursor_.size());
}

}  // namespace

Header parse_header(ByteCursor& cursor, const std::string& origin) {
  return Parser(cursor, origin).parse();
}

}  // namespace quipu::gguf
