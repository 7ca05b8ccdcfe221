// Lays a file out completely before its first byte is written, then streams the tensors' data.
#include "gguf/writer.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <type_traits>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "gguf/allocation.h"
#include "gguf/display.h"
#include "gguf/layout.h"
#include "gguf/split.h"

namespace quipu::gguf {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kMaxNameBytes = 64;

using Keys = std::vector<std::pair<std::string_view, const Value*>>;
using Sink = std::function<void(std::span<const std::byte>)>;
static_assert(std::endian::native == std::endian::little, "numbers are written as they stand in memory");

/// Appends what stands before the tensors' data.
class HeaderBytes {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T>
  void number(T value) {
    append(std::as_bytes(std::span(&value, 1)));
  }
  void number(Bool value) { number(static_cast<std::uint8_t>(value.value)); }
  void text(std::string_view characters) {
    number(std::uint64_t{characters.size()});
    append(std::as_bytes(std::span(characters)));
  }
  void value(const Value& value);
  void key(std::string_view name, const Value& held) {
    text(name);
    number(static_cast<std::uint32_t>(type_of(held)));
    value(held);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const std::size_t end = bytes_.size();
    bytes_.resize(end + bytes.size());
    std::memcpy(bytes_.data() + end, bytes.data(), bytes.size());
  }

  std::vector<std::byte> bytes_;
};

void HeaderBytes::value(const Value& held) {
  const auto one = [this](const auto& element) {
    if constexpr (std::is_same_v<std::decay_t<decltype(element)>, std::string>) {
      text(element);
    } else {
      number(element);
    }
  };
  const auto* array = std::get_if<Array>(&held);
  if (array != nullptr) {
    number(static_cast<std::uint32_t>(element_type_of(*array)));
    number(std::uint64_t{size(*array)});
    std::visit([&](const auto& elements) { std::for_each(elements.begin(), elements.end(), one); }, *array);
    return;
  }
  std::visit(
      [&](const auto& scalar) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(scalar)>, Array>) one(scalar);
      },
      held);
}

/// What a file will look like.
struct Layout {
  std::string origin;
  std::uint32_t alignment = kDefaultAlignment;
  std::vector<std::byte> header;
  std::span<const TensorToWrite> tensors;
  std::vector<std::uint64_t> bytes;  // of each tensor
};

struct Checked {
  std::uint32_t alignment;
  std::vector<std::uint64_t> bytes;
};

/// Everything that can be wrong with what the caller passed, before anything is written.
Checked check(const std::string& origin, const Metadata& metadata, std::span<const TensorToWrite> tensors) {
  Checked checked;
  checked.alignment = alignment_of(metadata, ErrorCode::invalid_argument);
  for (const auto& [key, value] : metadata.entries()) {
    if (key.empty() || key.size() > kMaxKeyBytes) {
      fail(ErrorCode::invalid_argument, "{}: key '{}': a name of {} bytes, where 1 to {} are possible",
           origin, printable(key), key.size(), kMaxKeyBytes);
    }
  }
  std::set<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    const std::string where = fmt::format("{}: tensor '{}'", origin, printable(tensor.name));
    if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes) {
      fail(ErrorCode::invalid_argument, "{}: a name of {} bytes, where 1 to {} are possible", where,
           tensor.name.size(), kMaxNameBytes);
    }
    if (!names.insert(tensor.name).second) fail(ErrorCode::invalid_argument, "{}: occurs twice", where);
    if (!tensor.produce) fail(ErrorCode::invalid_argument, "{}: nothing produces its data", where);
    checked.bytes.push_back(
        tensor_size(tensor.type, tensor.dims, ErrorCode::invalid_argument, origin, tensor.name).bytes);
  }
  return checked;
}

/// `metadata` without the keys of a split that it may have been read from.
Keys own_keys(const Metadata& metadata) {
  Keys keys;
  for (const auto& [key, value] : metadata.entries()) {
    if (!is_split_key(key)) keys.emplace_back(key, &value);
  }
  return keys;
}

Layout lay_out(std::string origin, const Keys& keys, std::uint32_t alignment,
               std::span<const TensorToWrite> tensors, std::span<const std::uint64_t> bytes) {
  Layout layout;
  layout.origin = std::move(origin);
  layout.alignment = alignment;
  layout.tensors = tensors;
  layout.bytes.assign(bytes.begin(), bytes.end());

  HeaderBytes out;
  out.number(kMagic);
  out.number(kVersion);
  out.number(std::uint64_t{tensors.size()});
  out.number(std::uint64_t{keys.size()});
  for (const auto& [key, value] : keys) out.key(key, *value);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    out.text(tensors[i].name);
    out.number(static_cast<std::uint32_t>(tensors[i].dims.size()));
    for (const std::uint64_t dim : tensors[i].dims) out.number(dim);
    out.number(static_cast<std::uint32_t>(tensors[i].type));
    out.number(offset);
    const auto end = checked_add(offset, bytes[i]);
    const auto next = end ? checked_round_up<std::uint64_t>(*end, alignment) : std::nullopt;
    if (!next) fail(ErrorCode::invalid_argument, "{}: the tensors are too large for a file", layout.origin);
    offset = *next;
  }
  layout.header = out.take();
  return layout;
}

void put_padding(const Sink& sink, std::uint64_t position, std::uint64_t alignment) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  for (std::uint64_t left = round_up(position, alignment) - position; left > 0;) {
    const std::size_t step = std::min<std::uint64_t>(left, kZeros.size());
    sink(std::span(kZeros).first(step));
    left -= step;
  }
}

void emit(const Layout& layout, const Sink& sink) {
  sink(layout.header);
  put_padding(sink, layout.header.size(), layout.alignment);
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    const TensorToWrite& tensor = layout.tensors[i];
    std::uint64_t written = 0;
    tensor.produce([&](std::span<const std::byte> piece) {
      if (piece.size() > layout.bytes[i] - written) {
        fail(ErrorCode::invalid_argument, "{}: tensor '{}': more data than its {} bytes", layout.origin,
             printable(tensor.name), layout.bytes[i]);
      }
      sink(piece);
      written += piece.size();
    });
    if (written != layout.bytes[i]) {
      fail(ErrorCode::invalid_argument, "{}: tensor '{}': {} bytes of data, where {} are needed",
           layout.origin, printable(tensor.name), written, layout.bytes[i]);
    }
    put_padding(sink, written, layout.alignment);
  }
}

/// Where each shard's tensors begin, and the end: near even by bytes, at least one tensor each.
std::vector<std::size_t> divide(std::span<const std::uint64_t> bytes, std::size_t n_shards) {
  double total = 0;
  for (const std::uint64_t size : bytes) total += static_cast<double>(size);
  std::vector<std::size_t> borders{0};
  double sum = 0;
  std::size_t i = 0;
  for (std::size_t shard = 0; shard + 1 < n_shards; ++shard) {
    const double target = total * static_cast<double>(shard + 1) / static_cast<double>(n_shards);
    const std::size_t last = bytes.size() - (n_shards - shard - 1);  // leaves one for each that follows
    do {
      sum += static_cast<double>(bytes[i++]);
    } while (i < last && sum + static_cast<double>(bytes[i]) / 2 <= target);
    borders.push_back(i);
  }
  borders.push_back(bytes.size());
  return borders;
}

/// The same for the same metadata and table of tensors.
std::uint64_t fingerprint(const Layout& whole) {
  return XXH3_64bits(whole.header.data(), whole.header.size());
}

}  // namespace

TensorToWrite tensor_in_memory(std::string name, ElementType type, std::vector<std::uint64_t> dims,
                               std::span<const std::byte> bytes) {
  const TensorSize needed = tensor_size(type, dims, ErrorCode::invalid_argument, "in memory", name);
  if (needed.bytes != bytes.size()) {
    fail(ErrorCode::invalid_argument, "in memory: tensor '{}': {} bytes of data, where {} are needed",
         printable(name), bytes.size(), needed.bytes);
  }
  return {std::move(name), type, std::move(dims), [bytes](const Sink& put) { put(bytes); }};
}

void write_file(const std::filesystem::path& path, const Metadata& metadata,
                const std::vector<TensorToWrite>& tensors) {
  or_out_of_memory(path.string(), [&] {
    const Checked checked = check(path.string(), metadata, tensors);
    const Layout layout =
        lay_out(path.string(), own_keys(metadata), checked.alignment, tensors, checked.bytes);
    AtomicFileWriter file(path);
    emit(layout, [&](std::span<const std::byte> bytes) { file.write(bytes); });
    file.commit();
  });
}

std::vector<std::byte> write_memory(const Metadata& metadata, const std::vector<TensorToWrite>& tensors) {
  return or_out_of_memory(metadata.origin(), [&] {
    const Checked checked = check(metadata.origin(), metadata, tensors);
    const Layout layout =
        lay_out(metadata.origin(), own_keys(metadata), checked.alignment, tensors, checked.bytes);
    std::vector<std::byte> out;
    emit(layout,
         [&](std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); });
    return out;
  });
}

std::vector<std::filesystem::path> write_split(const std::filesystem::path& prefix, const Metadata& metadata,
                                               const std::vector<TensorToWrite>& tensors,
                                               std::size_t n_shards) {
  return or_out_of_memory(prefix.string(), [&] {
    if (n_shards == 0 || n_shards > kMaxShards || n_shards > std::max<std::size_t>(tensors.size(), 1)) {
      fail(ErrorCode::invalid_argument, "{}: {} tensors cannot be divided into {} shards", prefix.string(),
           tensors.size(), n_shards);
    }
    const Checked checked = check(prefix.string(), metadata, tensors);
    const std::span all(tensors);
    const std::span<const std::uint64_t> bytes(checked.bytes);
    const auto keys = own_keys(metadata);
    const Value count = static_cast<std::uint16_t>(n_shards);
    const Value n_tensors = static_cast<std::int32_t>(tensors.size());
    const Value mark = fingerprint(lay_out(prefix.string(), keys, checked.alignment, all, bytes));
    const Value alignment = checked.alignment;
    const std::vector<std::size_t> borders = divide(bytes, n_shards);

    std::vector<std::filesystem::path> paths;
    std::vector<std::unique_ptr<AtomicFileWriter>> files;
    for (std::size_t i = 0; i < n_shards; ++i) {
      const std::size_t begin = borders[i];
      const std::size_t length = borders[i + 1] - begin;
      const Value no = static_cast<std::uint16_t>(i);
      auto shard_keys = i == 0 ? keys : Keys();
      if (i > 0 && checked.alignment != kDefaultAlignment) shard_keys.emplace_back(kAlignmentKey, &alignment);
      shard_keys.emplace_back(kSplitNo, &no);
      shard_keys.emplace_back(kSplitCount, &count);
      shard_keys.emplace_back(kSplitTensors, &n_tensors);
      shard_keys.emplace_back(kSplitFingerprint, &mark);
      paths.push_back(shard_path(prefix, i, n_shards));
      const Layout layout = lay_out(paths.back().string(), shard_keys, checked.alignment,
                                    all.subspan(begin, length), bytes.subspan(begin, length));
      AtomicFileWriter& file = *files.emplace_back(std::make_unique<AtomicFileWriter>(paths.back()));
      emit(layout, [&](std::span<const std::byte> piece) { file.write(piece); });
    }
    // The first shard, which makes the set one that can be opened, comes last.
    for (auto file = files.rbegin(); file != files.rend(); ++file) (*file)->commit();
    return paths;
  });
}

}  // namespace quipu::gguf
