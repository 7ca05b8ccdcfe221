// Reading GGUF files, version 2 and 3, whole or split in shards. Everything is validated before open() returns:
// a file that opens can be read to its last tensor byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "gguf/metadata.h"
#include "quant/element_type.h"

namespace quipu::gguf {

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::uint64_t> dims;  ///< 1 to 4, innermost first, as in the file
  std::uint64_t n_elements = 0;
  std::uint64_t bytes = 0;
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;  ///< of the data, from the start of the shard's file
};

enum class ReadMode {
  mapped,  ///< data() points into the page cache
  read,    ///< data() is unavailable; use read_data
};

/// A parsed file, or a set of shards seen as one.
class Reader {
 public:
  /// Opens a file; if it is the first shard of a split set (`NAME-00001-of-0000N.gguf`), all of it.
  /// Throws Error(io), or Error(bad_file) in one line that names the file, the key or tensor, and the fault.
  static Reader open(const std::filesystem::path& path, ReadMode mode = ReadMode::mapped);
  /// The same from memory (never split). The bytes must outlive the reader.
  static Reader from_memory(std::span<const std::byte> bytes, std::string origin);

  const Metadata& metadata() const;
  const std::vector<TensorInfo>& tensors() const;
  const TensorInfo* find_tensor(std::string_view name) const;
  std::uint32_t version() const;
  std::uint32_t alignment() const;
  std::size_t n_shards() const;
  const std::string& origin() const;
  /// Sum of the files' sizes.
  std::uint64_t file_bytes() const;

  /// The tensor's bytes in place; needs ReadMode::mapped or from_memory.
  std::span<const std::byte> data(const TensorInfo& tensor) const;
  /// Copies bytes [offset, offset + out.size()) of the tensor's data; works in every mode.
  void read_data(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const;
  /// The tensor's mapped bytes will not be needed soon (see MappedFile::release).
  void release(const TensorInfo& tensor) const noexcept;

  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace quipu::gguf
