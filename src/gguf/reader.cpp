// Joins the shards of a model into one table of tensors and serves their bytes.
#include "gguf/reader.h"

#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "gguf/allocation.h"
#include "gguf/display.h"
#include "gguf/header.h"
#include "gguf/name_index.h"
#include "gguf/split.h"

namespace quipu::gguf {
namespace {

/// Where a shard's bytes come from: memory that is mapped or the caller's, or a file that is read on demand.
struct Source {
  std::string origin;
  std::uint64_t size = 0;
  std::optional<File> file;
  std::optional<MappedFile> map;
  std::span<const std::byte> bytes;  // all of them, empty when read on demand
};

struct OpenShard {
  Source source;
  Header header;
};

Source open_source(const std::filesystem::path& path, ReadMode mode) {
  File file(path);
  Source source;
  source.origin = path.string();
  source.size = file.size();
  if (mode == ReadMode::mapped) {
    source.map.emplace(file);
    source.bytes = source.map->bytes();
  } else {
    source.file.emplace(std::move(file));
  }
  return source;
}

OpenShard open_shard(Source source) {
  ByteCursor cursor = source.file ? ByteCursor(*source.file) : ByteCursor(source.bytes);
  Header header = parse_header(cursor, source.origin);
  return {std::move(source), std::move(header)};
}

}  // namespace

struct Reader::Impl {
  ReadMode mode = ReadMode::mapped;
  std::uint32_t version = 0;
  std::uint32_t alignment = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
  NameIndex index;
  std::vector<Source> sources;

  explicit Impl(ReadMode read_mode) : mode(read_mode) {}

  void add_first(OpenShard shard);
  void add(Source source, std::vector<TensorInfo> shard_tensors);
  void add_others(const std::filesystem::path& path, const SplitPlace& set);
  std::span<const std::byte> checked_part(const TensorInfo& tensor) const;
};

void Reader::Impl::add_first(OpenShard shard) {
  version = shard.header.version;
  alignment = shard.header.alignment;
  metadata = std::move(shard.header.metadata);
  add(std::move(shard.source), std::move(shard.header.tensors));
}

void Reader::Impl::add(Source source, std::vector<TensorInfo> shard_tensors) {
  const auto name_at = [this](std::size_t place) -> const std::string& { return tensors[place].name; };
  const auto shard = static_cast<std::uint32_t>(sources.size());
  sources.push_back(std::move(source));
  if (tensors.empty()) {
    index.reserve(shard_tensors.size());
    tensors.reserve(shard_tensors.size());
  }
  for (TensorInfo& tensor : shard_tensors) {
    if (const auto place = index.find(tensor.name, name_at)) {
      const std::uint32_t other = tensors[*place].shard;
      fail(ErrorCode::bad_file, "{}: tensor '{}': {}", sources[shard].origin, printable(tensor.name),
           other == shard ? "occurs twice"
                          : fmt::format("also in shard {}, {}", other + 1, sources[other].origin));
    }
    tensor.shard = shard;
    tensors.push_back(std::move(tensor));
    index.add(name_at);
  }
}

void Reader::Impl::add_others(const std::filesystem::path& path, const SplitPlace& set) {
  const std::filesystem::path prefix = first_shard_prefix(path, set, metadata);
  for (std::size_t i = 1; i < set.count; ++i) {
    const std::filesystem::path shard_file = shard_path(prefix, i, set.count);
    std::error_code error;
    if (std::filesystem::status(shard_file, error).type() == std::filesystem::file_type::not_found) {
      fail(ErrorCode::io, "{}: shard {} of {} of the model is missing", shard_file.string(), i + 1,
           set.count);
    }
    OpenShard shard = open_shard(open_source(shard_file, mode));
    check_shard(shard.header.metadata, i, set, metadata);
    add(std::move(shard.source), std::move(shard.header.tensors));
  }
  check_tensor_count(metadata, sources.size(), tensors.size());
}

Reader Reader::open(const std::filesystem::path& path, ReadMode mode) {
  return or_out_of_memory(path.string(), [&] {
    auto impl = std::make_unique<Impl>(mode);
    impl->add_first(open_shard(open_source(path, mode)));
    const auto place = split_place(impl->metadata);
    if (place && place->count > 1) impl->add_others(path, *place);
    return Reader(std::move(impl));
  });
}

Reader Reader::from_memory(std::span<const std::byte> bytes, std::string origin) {
  return or_out_of_memory(origin, [&] {
    auto impl = std::make_unique<Impl>(ReadMode::mapped);
    Source source;
    source.origin = origin;
    source.size = bytes.size();
    source.bytes = bytes;
    impl->add_first(open_shard(std::move(source)));
    const auto place = split_place(impl->metadata);
    if (place && place->count > 1) {
      fail(ErrorCode::unsupported, "{}: shard {} of {} of a split model, which cannot be read from memory",
           origin, place->no + 1, place->count);
    }
    return Reader(std::move(impl));
  });
}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

const Metadata& Reader::metadata() const {
  return impl_->metadata;
}

const std::vector<TensorInfo>& Reader::tensors() const {
  return impl_->tensors;
}

const TensorInfo* Reader::find_tensor(std::string_view name) const {
  const auto& tensors = impl_->tensors;
  const auto place =
      impl_->index.find(name, [&](std::size_t at) -> const std::string& { return tensors[at].name; });
  return place ? &tensors[*place] : nullptr;
}

std::uint32_t Reader::version() const {
  return impl_->version;
}

std::uint32_t Reader::alignment() const {
  return impl_->alignment;
}

std::size_t Reader::n_shards() const {
  return impl_->sources.size();
}

const std::string& Reader::origin() const {
  return impl_->sources.front().origin;
}

std::uint64_t Reader::file_bytes() const {
  std::uint64_t sum = 0;
  for (const Source& source : impl_->sources) sum += source.size;
  return sum;
}

/// The tensor's bytes in memory; empty when they are read on demand.
std::span<const std::byte> Reader::Impl::checked_part(const TensorInfo& tensor) const {
  QUIPU_CHECK(tensor.shard < sources.size());
  const Source& source = sources[tensor.shard];
  QUIPU_CHECK(tensor.offset <= source.size && tensor.bytes <= source.size - tensor.offset);
  return source.file ? std::span<const std::byte>() : source.bytes.subspan(tensor.offset, tensor.bytes);
}

std::span<const std::byte> Reader::data(const TensorInfo& tensor) const {
  if (impl_->mode == ReadMode::read) {
    fail(ErrorCode::invalid_argument, "{}: tensor '{}': not in memory, since the file was opened to be read",
         origin(), printable(tensor.name));
  }
  return impl_->checked_part(tensor);
}

void Reader::read_data(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > tensor.bytes || out.size() > tensor.bytes - offset) {
    fail(ErrorCode::invalid_argument, "{}: tensor '{}': asked for {} bytes at byte {} of {}", origin(),
         printable(tensor.name), out.size(), offset, tensor.bytes);
  }
  if (out.empty()) return;
  const std::span<const std::byte> bytes = impl_->checked_part(tensor);
  const Source& source = impl_->sources[tensor.shard];
  if (source.file) {
    source.file->read_at(tensor.offset + offset, out);
  } else {
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  }
}

void Reader::release(const TensorInfo& tensor) const noexcept {
  if (tensor.shard >= impl_->sources.size()) return;
  const Source& source = impl_->sources[tensor.shard];
  if (source.map) source.map->release(tensor.offset, tensor.bytes);
}

}  // namespace quipu::gguf
