#include "context/state/state_format.h"

#include <algorithm>
#include <array>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"

namespace quipu {
namespace {

constexpr std::string_view kMagic = "QUIPUST\n";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kPartialFlag = 1;
constexpr std::uint32_t kCompressedFlag = 2;
constexpr std::size_t kHeadBytes = 16;  // of a section
constexpr std::size_t kSumBytes = 8;
constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
}

template <typename T>
T get(std::span<const std::byte> bytes, std::size_t offset) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(bytes[offset + i]) << (8 * i);
  return value;
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

std::string state_section_name(StateSection section, std::uint32_t index) {
  std::string name;
  for (int i = 0; i < 4; ++i) {
    const auto letter = static_cast<char>(static_cast<std::uint32_t>(section) >> (8 * i) & 0xff);
    name += letter >= 'A' && letter <= 'Z' ? letter : '?';
  }
  return fmt::format("{} {}", name, index);
}

struct StateWriter::Hash {
  XXH3_state_t state;
};

StateWriter::StateWriter(StateSink& sink, const StateHeader& header)
    : sink_(sink), header_(header), hash_(std::make_unique<Hash>()) {
  buffer_.reserve(kBufferBytes);
  for (const char letter : kMagic) buffer_.push_back(static_cast<std::byte>(letter));
  put(buffer_, kVersion);
  put(buffer_, static_cast<std::uint32_t>(header.kind));
  put(buffer_, (header.partial ? kPartialFlag : 0U) | (header.compressed ? kCompressedFlag : 0U));
  put(buffer_, header.n_sections);
  put(buffer_, header.length);
  put(buffer_, checksum(buffer_));
  QUIPU_CHECK(buffer_.size() == kStateHeaderBytes);
  flush();
}

StateWriter::~StateWriter() = default;

void StateWriter::flush() {
  sink_.write(buffer_);
  written_ += buffer_.size();
  buffer_.clear();
}

void StateWriter::begin_section(StateSection section, std::uint32_t index, std::uint64_t length) {
  flush();
  XXH3_64bits_reset(&hash_->state);
  section_end_ = written_ + kHeadBytes + length;
  write_u32(static_cast<std::uint32_t>(section));
  write_u32(index);
  write_u32(static_cast<std::uint32_t>(length));
  write_u32(static_cast<std::uint32_t>(length >> 32));
}

void StateWriter::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  XXH3_64bits_update(&hash_->state, bytes.data(), bytes.size());
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void StateWriter::write_u32(std::uint32_t value) {
  std::array<std::byte, 4> bytes;
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  write(bytes);
}

void StateWriter::write_string(std::string_view text) {
  write_u32(static_cast<std::uint32_t>(text.size()));
  write(std::as_bytes(std::span(text)));
}

void StateWriter::end_section() {
  flush();
  QUIPU_CHECK(written_ == section_end_);
  put(buffer_, static_cast<std::uint64_t>(XXH3_64bits_digest(&hash_->state)));
  flush();
  ++n_sections_;
}

void StateWriter::finish() {
  QUIPU_CHECK(written_ == header_.length && n_sections_ == header_.n_sections);
}

StateHeader read_state_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kStateHeaderBytes) {
    fail(ErrorCode::bad_file, "state: header: {} bytes are too few", bytes.size());
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    fail(ErrorCode::bad_file, "state: header: this is no saved state");
  }
  const auto version = get<std::uint32_t>(bytes, 8);
  if (version != kVersion) {
    fail(ErrorCode::unsupported, "state: header: version {}; only {} can be read", version, kVersion);
  }
  if (get<std::uint64_t>(bytes, kStateHeaderBytes - kSumBytes) !=
      checksum(bytes.first(kStateHeaderBytes - kSumBytes))) {
    fail(ErrorCode::bad_file, "state: header: checksum is wrong");
  }
  const auto kind = get<std::uint32_t>(bytes, 12);
  const auto flags = get<std::uint32_t>(bytes, 16);
  if (kind != static_cast<std::uint32_t>(StateKind::context) &&
      kind != static_cast<std::uint32_t>(StateKind::sequence)) {
    fail(ErrorCode::bad_file, "state: header: kind {} is unknown", kind);
  }
  if ((flags & ~(kPartialFlag | kCompressedFlag)) != 0)
    fail(ErrorCode::bad_file, "state: header: flags {:#x} are unknown", flags);
  return {
      .kind = static_cast<StateKind>(kind),
      .partial = (flags & kPartialFlag) != 0,
      .compressed = (flags & kCompressedFlag) != 0,
      .n_sections = get<std::uint32_t>(bytes, 20),
      .length = get<std::uint64_t>(bytes, 24),
  };
}

StateReader::StateReader(std::span<const std::byte> bytes) : header_(read_state_header(bytes)) {
  if (header_.length != bytes.size()) {
    fail(ErrorCode::bad_file, "state: header: {} bytes in all, but there are {}", header_.length,
         bytes.size());
  }
  std::span<const std::byte> rest = bytes.subspan(kStateHeaderBytes);
  for (std::uint32_t i = 0; i < header_.n_sections; ++i) {
    if (rest.size() < kStateSectionBytes) {
      fail(ErrorCode::bad_file, "state: section {} of {} is missing", i, header_.n_sections);
    }
    const auto section = static_cast<StateSection>(get<std::uint32_t>(rest, 0));
    const auto index = get<std::uint32_t>(rest, 4);
    const auto length = get<std::uint64_t>(rest, 8);
    const std::string name = state_section_name(section, index);
    if (length > rest.size() - kStateSectionBytes) {
      fail(ErrorCode::bad_file, "state: section {}: {} bytes, but {} are left", name, length,
           rest.size() - kStateSectionBytes);
    }
    const auto n = static_cast<std::size_t>(length);
    if (get<std::uint64_t>(rest, kHeadBytes + n) != checksum(rest.first(kHeadBytes + n))) {
      fail(ErrorCode::bad_file, "state: section {}: checksum is wrong", name);
    }
    sections_.push_back({section, index, rest.subspan(kHeadBytes, n)});
    rest = rest.subspan(kStateSectionBytes + n);
  }
  if (!rest.empty()) fail(ErrorCode::bad_file, "state: {} bytes behind the last section", rest.size());
}

std::span<const std::byte> StateReader::next(StateSection section, std::uint32_t index) {
  if (n_read_ == sections_.size()) {
    fail(ErrorCode::bad_file, "state: section {} is missing", state_section_name(section, index));
  }
  const Section& found = sections_[n_read_];
  if (found.section != section || found.index != index) {
    fail(ErrorCode::bad_file, "state: section {} instead of {}",
         state_section_name(found.section, found.index), state_section_name(section, index));
  }
  ++n_read_;
  return found.content;
}

void StateReader::finish() const {
  if (n_read_ == sections_.size()) return;
  fail(ErrorCode::bad_file, "state: section {} is too many",
       state_section_name(sections_[n_read_].section, sections_[n_read_].index));
}

std::span<const std::byte> StateCursor::take(std::size_t n) {
  if (n > bytes_.size()) fail(ErrorCode::bad_file, "state: section {} ends too early", name_);
  const auto taken = bytes_.first(n);
  bytes_ = bytes_.subspan(n);
  return taken;
}

std::uint32_t StateCursor::u32() {
  return get<std::uint32_t>(take(4), 0);
}

std::string_view StateCursor::string() {
  const auto bytes = take(u32());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t StateCursor::count(std::size_t bytes_each) {
  const std::size_t n = u32();
  if (n > bytes_.size() / bytes_each) {
    fail(ErrorCode::bad_file, "state: section {}: a count of {}, with {} bytes left", name_, n,
         bytes_.size());
  }
  return n;
}

void StateCursor::finish() const {
  if (!bytes_.empty()) {
    fail(ErrorCode::bad_file, "state: section {}: {} bytes too many", name_, bytes_.size());
  }
}

}  // namespace quipu
