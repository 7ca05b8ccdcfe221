// Loads hostile states into a memory that holds something. Either nothing changes, or the memory is a working
// one. Checksums are always right, so that what is behind them is reached: the input is either edits of a
// good state, or the cell lists of one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/zstd.h"
#include "context/state/state.h"
#include "context/state/state_format.h"
#include "memory/kv_memory.h"
#include "quipu/error.h"
#include "quipu/log.h"

namespace {

using namespace quipu;

// Eight bytes a cell.
class PlainStorage final : public KvStorage {
 public:
  explicit PlainStorage(std::size_t n_pages) : cells_(n_pages * kPagePlaces) {}

  KvShape shape() const override { return {}; }
  void copy_page(std::int32_t from, std::int32_t to) override {
    for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) copy_cell(from, slot, to, slot);
  }
  void copy_cell(std::int32_t from_page, std::int32_t from_slot, std::int32_t to_page,
                 std::int32_t to_slot) override {
    cells_.at(at(to_page, to_slot)) = cells_.at(at(from_page, from_slot));
  }
  std::size_t cell_bytes() const override { return sizeof(std::uint64_t); }
  void get_cell(std::int32_t page, std::int32_t slot, std::span<std::byte> bytes) const override {
    std::memcpy(bytes.data(), &cells_.at(at(page, slot)), sizeof(std::uint64_t));
  }
  void set_cell(std::int32_t page, std::int32_t slot, std::span<const std::byte> bytes) override {
    std::memcpy(&cells_.at(at(page, slot)), bytes.data(), sizeof(std::uint64_t));
  }
  void rotate_keys(std::span<const CellShift> shifts, const KeyRotation&) override {
    for (const CellShift& shift : shifts) cells_.at(at(shift.page, shift.slot)) += 1;
  }
  void clear() override { std::fill(cells_.begin(), cells_.end(), 0); }
  std::size_t bytes() const override { return cells_.size() * sizeof(std::uint64_t); }

 private:
  static std::size_t at(std::int32_t page, std::int32_t slot) {
    return static_cast<std::size_t>(page) * kPagePlaces + static_cast<std::size_t>(slot);
  }
  std::vector<std::uint64_t> cells_;
};

std::unique_ptr<KvMemory> make_memory() {
  const KvMemoryParams params{.n_sequences = 3, .n_cells = 512, .unified = true, .n_ubatch = 32};
  std::vector<KvPart> parts;
  for (const std::uint32_t window : {0U, 20U}) {
    KvPart part{.config = kv_part_config(params, window), .storages = {}};
    part.storages.push_back(std::make_unique<PlainStorage>(part.config.n_pages));
    parts.push_back(std::move(part));
  }
  return std::make_unique<KvMemory>(params, std::move(parts));
}

void decode(KvMemory& memory, std::int32_t sequence, std::int32_t n) {
  const std::int32_t first = memory.max_position(sequence) + 1;
  if (first > INT32_MAX - 100) return;
  std::vector<std::int32_t> positions, sequences;
  std::vector<std::uint32_t> offsets{0};
  for (std::int32_t i = 0; i < n; ++i) {
    positions.push_back(first + i);
    sequences.push_back(sequence);
    offsets.push_back(static_cast<std::uint32_t>(sequences.size()));
  }
  const MemoryBatch batch{positions, offsets, sequences};
  if (memory.prepare(batch, 32) != PrepareResult::ready) return;
  for (std::size_t i = 0; i < memory.n_micro_batches(); ++i) memory.commit(batch);
}

void fill(KvMemory& memory) {
  decode(memory, 0, 40);
  memory.copy(0, 1, -1, -1);
  decode(memory, 0, 12);
  decode(memory, 1, 3);
  memory.add(1, 30, -1, 2);
}

std::vector<std::byte> save(KvMemory& memory, const StateScope& scope = {},
                            Compression compression = Compression::none) {
  const StateAccess access{&memory, {{"model", "none"}}};
  return save_state(access, scope, {}, compression);
}

void mend(std::vector<std::byte>& bytes) {
  const auto put = [&](std::size_t offset, std::size_t begin, std::size_t n) {
    const std::uint64_t sum = XXH3_64bits(bytes.data() + begin, n);
    std::memcpy(bytes.data() + offset, &sum, sizeof(sum));
  };
  if (bytes.size() < kStateHeaderBytes) return;
  const std::uint64_t size = bytes.size();
  std::memcpy(bytes.data() + 24, &size, sizeof(size));
  put(32, 0, 32);
  for (std::size_t offset = kStateHeaderBytes; offset + kStateSectionBytes <= bytes.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + offset + 8, sizeof(length));
    if (length > bytes.size() - offset - kStateSectionBytes) return;
    put(offset + 16 + length, offset, 16 + length);
    offset += kStateSectionBytes + length;
  }
}

// Where, what and how much: three bytes of place, one of kind, four of value.
std::vector<std::byte> edited(std::vector<std::byte> bytes, std::span<const std::uint8_t> input) {
  for (; input.size() >= 8; input = input.subspan(8)) {
    if (bytes.size() < 8) break;
    const std::size_t place = (input[0] | std::size_t{input[1]} << 8) % (bytes.size() - 4);
    const auto where = bytes.begin() + static_cast<std::ptrdiff_t>(place);
    switch (input[3] % 4) {
      case 0:
      case 1: std::memcpy(bytes.data() + place, &input[4], 4); break;
      case 2: bytes.insert(where, input[4] % 64, static_cast<std::byte>(input[5])); break;
      default: bytes.erase(where, where + std::min<std::ptrdiff_t>(input[4], bytes.end() - where));
    }
  }
  mend(bytes);
  return bytes;
}

class VectorSink final : public StateSink {
 public:
  void write(std::span<const std::byte> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  std::vector<std::byte> bytes;
};

// A state whose cell lists are the input, in halves.
std::vector<std::byte> composed(const std::vector<std::byte>& good, std::span<const std::uint8_t> input) {
  StateReader reader(good);
  const auto facts = reader.next(StateSection::fingerprint, 0);
  VectorSink sink;
  StateWriter writer(sink, {.kind = reader.header().kind, .n_sections = 6, .length = 0});
  const auto add = [&](StateSection section, std::uint32_t index, std::span<const std::byte> content) {
    writer.begin_section(section, index, content.size());
    writer.write(content);
    writer.end_section();
  };
  add(StateSection::fingerprint, 0, facts);
  add(StateSection::tokens, 0, {});
  const auto all = std::as_bytes(input);
  for (std::uint32_t part = 0; part < 2; ++part) {
    const auto content = part == 0 ? all.first(all.size() / 2) : all.subspan(all.size() / 2);
    std::uint32_t n_cells = 0;
    if (content.size() >= 8) std::memcpy(&n_cells, content.data() + 4, 4);
    add(StateSection::cells, part, content);
    add(StateSection::data, part << 16, std::vector<std::byte>(8 * std::min(n_cells, 4096U)));
  }
  mend(sink.bytes);
  return sink.bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = (set_log_sink([](LogLevel, std::string_view) {}), true);
  static_cast<void>(quiet);
  if (size == 0) return 0;
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  const auto memory = make_memory();
  fill(*memory);
  const bool one = (data[0] & 1) != 0;
  const StateScope scope{.sequence = one ? std::optional<std::int32_t>(1) : std::nullopt,
                         .partial_only = (data[0] & 4) != 0};
  const bool compressed = (data[0] & 8) != 0 && has_zstd();
  const auto good = save(*memory, scope, compressed ? Compression::zstd : Compression::none);
  const auto bytes = (data[0] & 2) != 0 ? edited(good, input) : composed(good, input);
  const auto before = save(*memory);
  const StateAccess access{memory.get(), {{"model", "none"}}};
  try {
    load_state(access, scope.sequence, bytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal || save(*memory) != before) std::abort();
  }
  for (std::int32_t s = 0; s < 3; ++s) {
    decode(*memory, s, 5);
    memory->add(s, 3, -1, -2);
    memory->remove(s, 10, 20);
  }
  memory->keep(1);
  decode(*memory, 1, 5);
  memory->remove(-1, -1, -1);
  if (memory->cells(0).n_used_cells() != 0 || memory->cells(1).n_used_cells() != 0) std::abort();
  return 0;
}
