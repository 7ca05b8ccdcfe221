// The file format of saved states: a header, then sections with lengths and checksums
// (docs/state-format.md). What the sections mean is state.cpp's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

enum class StateKind : std::uint32_t { context = 1, sequence = 2 };

struct StateHeader {
  StateKind kind = StateKind::context;
  bool partial = false;
  bool compressed = false;  ///< contents of sections DATA
  std::uint32_t n_sections = 0;
  std::uint64_t length = 0;  ///< of the whole, in bytes
};

/// Four letters, the first in the lowest byte.
enum class StateSection : std::uint32_t {
  fingerprint = 0x54525046,  ///< FPRT
  tokens = 0x4e4b4f54,       ///< TOKN
  cells = 0x4c4c4543,        ///< CELL; index: part of the memory
  data = 0x41544144,         ///< DATA; index: part * 65536 + layer
};

inline constexpr std::size_t kStateHeaderBytes = 40;
/// What a section takes beside its content.
inline constexpr std::size_t kStateSectionBytes = 24;

/// Where a state is written to.
class StateSink {
 public:
  virtual ~StateSink() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
};

class StateWriter {
 public:
  StateWriter(StateSink& sink, const StateHeader& header);
  ~StateWriter();

  void begin_section(StateSection section, std::uint32_t index, std::uint64_t length);
  void write(std::span<const std::byte> bytes);
  void write_u32(std::uint32_t value);
  void write_i32(std::int32_t value) { write_u32(static_cast<std::uint32_t>(value)); }
  void write_string(std::string_view text);  ///< length, then bytes
  /// Exactly the length that was said has been written.
  void end_section();
  /// All sections are there.
  void finish();

 private:
  struct Hash;
  void flush();

  StateSink& sink_;
  StateHeader header_;
  std::unique_ptr<Hash> hash_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;
  std::uint64_t section_end_ = 0;
  std::uint32_t n_sections_ = 0;
};

/// Error(bad_file) for what is no header. Needs the first kStateHeaderBytes only.
StateHeader read_state_header(std::span<const std::byte> bytes);

/// A whole state whose form and checksums are right. Error(bad_file) names the section that is not.
class StateReader {
 public:
  explicit StateReader(std::span<const std::byte> bytes);

  const StateHeader& header() const { return header_; }
  std::size_t n_sections() const { return sections_.size(); }
  /// The content of the next section, which must be this one.
  std::span<const std::byte> next(StateSection section, std::uint32_t index);
  /// There are no more.
  void finish() const;

 private:
  struct Section {
    StateSection section;
    std::uint32_t index;
    std::span<const std::byte> content;
  };
  StateHeader header_;
  std::vector<Section> sections_;
  std::size_t n_read_ = 0;
};

/// Reads a section's content; Error(bad_file) where it ends too early.
class StateCursor {
 public:
  StateCursor(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  std::uint32_t u32();
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  std::string_view string();
  /// A count of things that take at least `bytes_each`, so that there can be that many.
  std::size_t count(std::size_t bytes_each);
  void finish() const;  ///< everything has been read

 private:
  std::span<const std::byte> take(std::size_t n);

  std::span<const std::byte> bytes_;
  std::string name_;
};

/// "CELL 0"
std::string state_section_name(StateSection section, std::uint32_t index);

}  // namespace quipu
