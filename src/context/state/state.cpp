#include "context/state/state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/zstd.h"
#include "context/state/state_format.h"
#include "graph/ops/rope.h"
#include "quant/quant.h"

namespace quipu {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kCellBytes = 8;        // of a cell in section CELL
constexpr std::size_t kPlacedBytes = 8;      // of a cell in a sequence
constexpr std::size_t kSequenceBytes = 20;   // of a sequence without its cells
constexpr std::size_t kMaxLayers = 1 << 16;  // of a part, as sections number them

std::string rotation_fact(const KeyRotation* rotation) {
  if (rotation == nullptr) return "none";
  const XXH64_hash_t hash =
      XXH3_64bits(rotation->frequencies.data(), rotation->frequencies.size() * sizeof(double));
  return fmt::format("{} {} pairs from {} on, {:016x}",
                     rotation->style == RopeStyle::halves ? "halves" : "interleaved",
                     rotation->frequencies.size(), rotation->first, hash);
}

// Text, if there can be any, is the last part.
std::size_t count_parts(const StateAccess& access) {
  return access.memory->n_parts() + (access.text != nullptr ? 1 : 0);
}

bool is_text(const StateAccess& access, std::size_t part) {
  return part == access.memory->n_parts();
}

std::span<const std::unique_ptr<KvStorage>> storages_of(const StateAccess& access, std::size_t part) {
  return is_text(access, part) ? access.text->storages() : access.memory->storages(part);
}

MemoryState describe(const StateAccess& access, const StateScope& scope) {
  MemoryState state = access.memory->describe(scope);
  if (access.text != nullptr) state.parts.push_back(access.text->describe(scope));
  return state;
}

// Both or none.
void restore(const StateAccess& access, MemoryState& state, const StateScope& scope,
             const CellSource& source) {
  if (access.text != nullptr) {
    access.text->prepare_restore(state.parts.back(), state.parts.size() - 1, scope);
    state.parts.pop_back();
  }
  access.memory->restore(state, scope, source);
  if (access.text != nullptr) access.text->commit_restore(source);
}

// Everything that stored numbers depend on.
Facts all_facts(const StateAccess& access) {
  Facts facts = access.facts;
  const Memory& memory = *access.memory;
  for (std::size_t part = 0; part < count_parts(access); ++part) {
    const auto storages = storages_of(access, part);
    QUIPU_CHECK(storages.size() <= kMaxLayers);
    const std::string kind =
        is_text(access, part) ? "encoded text" : fmt::format("window {}", memory.window(part));
    facts.emplace_back(fmt::format("part {}", part), fmt::format("{}, {} layers", kind, storages.size()));
    for (std::size_t layer = 0; layer < storages.size(); ++layer) {
      const KvShape shape = storages[layer]->shape();
      const KeyRotation* rotation = is_text(access, part) ? nullptr : memory.rotation(part, layer);
      facts.emplace_back(fmt::format("part {} layer {}", part, layer),
                         fmt::format("{} heads, keys {} x {}, values {} x {}, rotation {}", shape.n_kv_heads,
                                     shape.k_dim, info(shape.k_type).name, shape.v_dim,
                                     info(shape.v_type).name, rotation_fact(rotation)));
    }
  }
  return facts;
}

std::size_t fact_bytes(const Facts& facts) {
  std::size_t n = 4;
  for (const auto& [name, value] : facts) n += 8 + name.size() + value.size();
  return n;
}

std::size_t cell_list_bytes(const MemoryState::Part& part) {
  std::size_t n = 12 + part.cells.size() * kCellBytes;
  for (const auto& sequence : part.sequences) n += kSequenceBytes + sequence.cells.size() * kPlacedBytes;
  return n;
}

// A layer's cells, one after another.
std::vector<std::byte> read_cells(const MemoryState::Part& part, const KvStorage& storage) {
  const std::size_t cell_bytes = storage.cell_bytes();
  std::vector<std::byte> bytes(part.cells.size() * cell_bytes);
  for (std::size_t i = 0; i < part.cells.size(); ++i) {
    storage.get_cell(part.cells[i].page, part.cells[i].slot,
                     std::span(bytes).subspan(i * cell_bytes, cell_bytes));
  }
  return bytes;
}

// All that is to be saved, and how long it will be.
struct Saving {
  Saving(const StateAccess& given, const StateScope& scope, std::size_t n_tokens, Compression compression)
      : access(given), facts(all_facts(given)), state(describe(given, scope)) {
    header.kind = scope.sequence ? StateKind::sequence : StateKind::context;
    header.partial = scope.partial_only;
    header.compressed = compression == Compression::zstd;
    header.length = kStateHeaderBytes;
    add_section(fact_bytes(facts));
    add_section(n_tokens * sizeof(Token));
    for (std::size_t part = 0; part < state.parts.size(); ++part) {
      add_section(cell_list_bytes(state.parts[part]));
      if (state.parts[part].has_data) add_data(part);
    }
  }
  void add_section(std::size_t n) {
    ++header.n_sections;
    header.length += kStateSectionBytes + n;
  }
  void add_data(std::size_t part);
  void write(std::span<const Token> tokens, StateSink& sink) const;
  void write_cells(std::size_t part, StateWriter& writer) const;
  void write_data(std::size_t part, StateWriter& writer) const;

  const StateAccess& access;
  Facts facts;
  MemoryState state;
  StateHeader header;
  std::map<std::uint32_t, std::vector<std::byte>> compressed;  // contents of DATA by index
};

std::uint32_t data_index(std::size_t part, std::size_t layer) {
  return static_cast<std::uint32_t>(part * kMaxLayers + layer);
}

void Saving::add_data(std::size_t number) {
  const MemoryState::Part& part = state.parts[number];
  const auto storages = storages_of(access, number);
  for (std::size_t layer = 0; layer < storages.size(); ++layer) {
    if (header.compressed) {
      auto& content = compressed[data_index(number, layer)];
      content = zstd_compress(read_cells(part, *storages[layer]));
      add_section(content.size());
    } else {
      add_section(part.cells.size() * storages[layer]->cell_bytes());
    }
  }
}

void Saving::write(std::span<const Token> tokens, StateSink& sink) const {
  StateWriter writer(sink, header);
  writer.begin_section(StateSection::fingerprint, 0, fact_bytes(facts));
  writer.write_u32(static_cast<std::uint32_t>(facts.size()));
  for (const auto& [name, value] : facts) {
    writer.write_string(name);
    writer.write_string(value);
  }
  writer.end_section();
  writer.begin_section(StateSection::tokens, 0, tokens.size_bytes());
  for (const Token token : tokens) writer.write_i32(token);
  writer.end_section();
  for (std::size_t part = 0; part < state.parts.size(); ++part) {
    write_cells(part, writer);
    if (state.parts[part].has_data) write_data(part, writer);
  }
  writer.finish();
}

void Saving::write_cells(std::size_t number, StateWriter& writer) const {
  const MemoryState::Part& part = state.parts[number];
  writer.begin_section(StateSection::cells, static_cast<std::uint32_t>(number), cell_list_bytes(part));
  writer.write_u32(part.has_data ? 1 : 0);
  writer.write_u32(static_cast<std::uint32_t>(part.cells.size()));
  for (const MemoryState::Cell& cell : part.cells) {
    writer.write_i32(cell.position);
    writer.write_i32(cell.shift);
  }
  writer.write_u32(static_cast<std::uint32_t>(part.sequences.size()));
  for (const MemoryState::Sequence& sequence : part.sequences) {
    writer.write_i32(sequence.id);
    writer.write_i32(sequence.forgotten_low);
    writer.write_i32(sequence.forgotten_high);
    writer.write_i32(sequence.forgotten_end);
    writer.write_u32(static_cast<std::uint32_t>(sequence.cells.size()));
    for (const MemoryState::Placed& placed : sequence.cells) {
      writer.write_i32(placed.place);
      writer.write_u32(placed.cell);
    }
  }
  writer.end_section();
}

void Saving::write_data(std::size_t number, StateWriter& writer) const {
  const auto storages = storages_of(access, number);
  for (std::size_t layer = 0; layer < storages.size(); ++layer) {
    const std::uint32_t index = data_index(number, layer);
    if (header.compressed) {
      const auto& content = compressed.at(index);
      writer.begin_section(StateSection::data, index, content.size());
      writer.write(content);
    } else {
      std::vector<std::byte> bytes(storages[layer]->cell_bytes());
      const auto& cells = state.parts[number].cells;
      writer.begin_section(StateSection::data, index, cells.size() * bytes.size());
      for (const MemoryState::Cell& cell : cells) {
        storages[layer]->get_cell(cell.page, cell.slot, bytes);
        writer.write(bytes);
      }
    }
    writer.end_section();
  }
}

class SpanSink final : public StateSink {
 public:
  explicit SpanSink(std::span<std::byte> out) : rest_(out) {}
  void write(std::span<const std::byte> bytes) override {
    std::copy(bytes.begin(), bytes.end(), rest_.begin());
    rest_ = rest_.subspan(bytes.size());
  }

 private:
  std::span<std::byte> rest_;
};

class FileSink final : public StateSink {
 public:
  explicit FileSink(AtomicFileWriter& file) : file_(file) {}
  void write(std::span<const std::byte> bytes) override { file_.write(bytes); }

 private:
  AtomicFileWriter& file_;
};

void check_facts(std::span<const std::byte> content, const Facts& own) {
  StateCursor cursor(content, state_section_name(StateSection::fingerprint, 0));
  const std::size_t n = cursor.count(8);
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view name = cursor.string();
    const std::string_view value = cursor.string();
    if (i >= own.size() || name != own[i].first) {
      fail(ErrorCode::bad_file, "state: fingerprint: '{}' means nothing to this context", name);
    }
    if (value != own[i].second) {
      fail(ErrorCode::bad_file, "state: fingerprint: '{}' is '{}' there and '{}' here", name, value,
           own[i].second);
    }
  }
  if (n < own.size()) {
    fail(ErrorCode::bad_file, "state: fingerprint: '{}' is missing", own[n].first);
  }
  cursor.finish();
}

std::vector<Token> parse_tokens(std::span<const std::byte> content) {
  if (content.size() % sizeof(Token) != 0) {
    fail(ErrorCode::bad_file, "state: section TOKN 0: {} bytes are no tokens", content.size());
  }
  StateCursor cursor(content, state_section_name(StateSection::tokens, 0));
  std::vector<Token> tokens(content.size() / sizeof(Token));
  for (Token& token : tokens) token = cursor.i32();
  return tokens;
}

MemoryState::Part parse_cells(std::span<const std::byte> content, std::uint32_t number) {
  StateCursor cursor(content, state_section_name(StateSection::cells, number));
  MemoryState::Part part;
  const std::uint32_t has_data = cursor.u32();
  if (has_data > 1) fail(ErrorCode::bad_file, "state: section CELL {}: a flag of {}", number, has_data);
  part.has_data = has_data == 1;
  part.cells.resize(cursor.count(kCellBytes));
  for (MemoryState::Cell& cell : part.cells) {
    cell.position = cursor.i32();
    cell.shift = cursor.i32();
  }
  part.sequences.resize(cursor.count(kSequenceBytes));
  for (MemoryState::Sequence& sequence : part.sequences) {
    sequence.id = cursor.i32();
    sequence.forgotten_low = cursor.i32();
    sequence.forgotten_high = cursor.i32();
    sequence.forgotten_end = cursor.i32();
    sequence.cells.resize(cursor.count(kPlacedBytes));
    for (MemoryState::Placed& placed : sequence.cells) {
      placed.place = cursor.i32();
      placed.cell = cursor.u32();
    }
  }
  cursor.finish();
  return part;
}

// A layer's cells.
struct Content {
  std::span<const std::byte> bytes;
  std::vector<std::byte> decompressed;  // what `bytes` are of, where they had been compressed
};

// Their length is known beforehand, so that nothing is taken for what claims to be more.
Content read_content(std::span<const std::byte> bytes, bool compressed, std::size_t n_cells,
                     const KvStorage& storage, const std::string& name) {
  const auto expected = checked_mul(n_cells, storage.cell_bytes());
  if (!expected || (!compressed && bytes.size() != *expected)) {
    fail(ErrorCode::bad_file, "state: section {}: {} bytes for {} cells of {}", name, bytes.size(), n_cells,
         storage.cell_bytes());
  }
  if (!compressed) return {bytes, {}};
  if (*expected > storage.bytes()) {
    fail(ErrorCode::out_of_memory, "state: section {}: {} cells find no room", name, n_cells);
  }
  Content content{{}, std::vector<std::byte>(*expected)};
  if (!zstd_decompress(bytes, content.decompressed)) {
    fail(ErrorCode::bad_file, "state: section {}: decompressing it does not give {} cells of {} bytes", name,
         n_cells, storage.cell_bytes());
  }
  content.bytes = content.decompressed;
  return content;
}

// They must stand for finite numbers.
void check_finite(std::span<const std::byte> content, const KvStorage& storage, const std::string& name) {
  const std::size_t cell_bytes = storage.cell_bytes();
  const KvShape shape = storage.shape();
  const std::size_t n_keys = shape.n_kv_heads * shape.k_dim;
  const std::size_t n_values = shape.n_kv_heads * shape.v_dim;
  if (n_keys + n_values == 0) return;
  const std::size_t key_bytes = row_bytes(shape.k_type, n_keys);
  std::vector<float> numbers(n_keys + n_values);
  for (std::size_t c = 0; c < content.size() / cell_bytes; ++c) {
    const auto cell = content.subspan(c * cell_bytes, cell_bytes);
    decode_row(shape.k_type, cell.first(key_bytes), std::span(numbers).first(n_keys));
    decode_row(shape.v_type, cell.subspan(key_bytes), std::span(numbers).subspan(n_keys));
    if (std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); })) continue;
    fail(ErrorCode::bad_file, "state: section {}: cell {} has numbers that are not finite", name, c);
  }
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const File file(path);
  std::vector<std::byte> head(std::min<std::uint64_t>(file.size(), kStateHeaderBytes));
  file.read_at(0, head);
  const StateHeader header = read_state_header(head);
  if (header.length != file.size()) {
    fail(ErrorCode::bad_file, "state: header: {} bytes in all, but '{}' has {}", header.length, path.string(),
         file.size());
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes);
  return bytes;
}

}  // namespace

std::size_t state_bytes(const StateAccess& access, const StateScope& scope, std::size_t n_tokens,
                        Compression compression) {
  return Saving(access, scope, n_tokens, compression).header.length;
}

std::vector<std::byte> save_state(const StateAccess& access, const StateScope& scope,
                                  std::span<const Token> tokens, Compression compression) {
  const Saving saving(access, scope, tokens.size(), compression);
  std::vector<std::byte> bytes(saving.header.length);
  SpanSink sink(bytes);
  saving.write(tokens, sink);
  return bytes;
}

std::size_t save_state(const StateAccess& access, const StateScope& scope, std::span<const Token> tokens,
                       std::span<std::byte> out, Compression compression) {
  const Saving saving(access, scope, tokens.size(), compression);
  if (saving.header.length > out.size()) {
    fail(ErrorCode::invalid_argument, "a state of {} bytes does not fit into {}", saving.header.length,
         out.size());
  }
  SpanSink sink(out);
  saving.write(tokens, sink);
  return saving.header.length;
}

std::size_t save_state_file(const StateAccess& access, const StateScope& scope, std::span<const Token> tokens,
                            const std::filesystem::path& path, Compression compression) {
  const Saving saving(access, scope, tokens.size(), compression);
  AtomicFileWriter file(path);
  FileSink sink(file);
  saving.write(tokens, sink);
  file.commit();
  return saving.header.length;
}

LoadedState load_state(const StateAccess& access, std::optional<SequenceId> sequence,
                       std::span<const std::byte> bytes, std::size_t max_tokens) {
  StateReader reader(bytes);
  const StateKind expected = sequence ? StateKind::sequence : StateKind::context;
  if (reader.header().kind != expected) {
    fail(ErrorCode::bad_file, "state: header: it is of a {}, not of a {}",
         sequence ? "whole context" : "sequence", sequence ? "sequence" : "whole context");
  }
  if (reader.header().compressed && !has_zstd()) {
    fail(ErrorCode::unsupported, "state: header: it is compressed with zstd, which this build cannot read");
  }
  check_facts(reader.next(StateSection::fingerprint, 0), all_facts(access));
  LoadedState loaded{parse_tokens(reader.next(StateSection::tokens, 0)), bytes.size()};
  if (loaded.tokens.size() > max_tokens) {
    fail(ErrorCode::invalid_argument, "state: {} tokens; there is space for {}", loaded.tokens.size(),
         max_tokens);
  }

  MemoryState state;
  std::vector<std::vector<Content>> data(count_parts(access));
  for (std::uint32_t part = 0; part < data.size(); ++part) {
    state.parts.push_back(parse_cells(reader.next(StateSection::cells, part), part));
    if (!state.parts.back().has_data) continue;
    const auto storages = storages_of(access, part);
    for (std::uint32_t layer = 0; layer < storages.size(); ++layer) {
      const std::uint32_t index = data_index(part, layer);
      const std::string name = state_section_name(StateSection::data, index);
      data[part].push_back(read_content(reader.next(StateSection::data, index), reader.header().compressed,
                                        state.parts.back().cells.size(), *storages[layer], name));
      check_finite(data[part].back().bytes, *storages[layer], name);
    }
  }
  reader.finish();

  const StateScope scope{.sequence = sequence, .partial_only = reader.header().partial};
  restore(access, state, scope,
          [&](std::size_t part, std::size_t layer, std::size_t cell, std::span<std::byte> out) {
            const auto from = data[part][layer].bytes.subspan(cell * out.size(), out.size());
            std::copy(from.begin(), from.end(), out.begin());
          });
  return loaded;
}

LoadedState load_state_file(const StateAccess& access, std::optional<SequenceId> sequence,
                            const std::filesystem::path& path, std::size_t max_tokens) {
  return load_state(access, sequence, read_file(path), max_tokens);
}

std::vector<Token> read_state_tokens(std::span<const std::byte> bytes) {
  StateReader reader(bytes);
  reader.next(StateSection::fingerprint, 0);
  return parse_tokens(reader.next(StateSection::tokens, 0));
}

std::vector<Token> read_state_file_tokens(const std::filesystem::path& path) {
  return read_state_tokens(read_file(path));
}

}  // namespace quipu
