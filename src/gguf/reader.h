// Reading GGUF files, version 2 and 3, whole or split in shards. Everything is validated before open()
// returns: a file that opens can be read to its last tensor byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace quipu::gguf {

enum class ReadMode {
  mapped,  ///< data() points into the page cache
  read,    ///< data() is unavailable; use read_data
};

/// A parsed file, or a set of shards seen as one.
class Reader {
 public:
  /// Opens a file; if it is the first shard of a split set (`NAME-00001-of-0000N.gguf`), all of it.
  /// Throws, in one line that names the file, the key or tensor, and the fault: Error(io); Error(bad_file);
  /// Error(unsupported) for version 1, big-endian files and tensor types that Quipu cannot read; or
  /// Error(out_of_memory).
  static Reader open(const std::filesystem::path& path, ReadMode mode = ReadMode::mapped);
  /// The same from memory (never split). The bytes must outlive the reader. Tensors' data is aligned as the
  /// file says only if the bytes are.
  static Reader from_memory(std::span<const std::byte> bytes, std::string origin);

  /// Of a split set: the first shard's, its `split.` keys included.
  const Metadata& metadata() const;
  /// In the file's order, shard after shard.
  const std::vector<TensorInfo>& tensors() const;
  const TensorInfo* find_tensor(std::string_view name) const;
  /// Of the first shard, as is the alignment (each shard has its own).
  std::uint32_t version() const;
  std::uint32_t alignment() const;
  std::size_t n_shards() const;
  const std::string& origin() const;
  /// Sum of the files' sizes.
  std::uint64_t file_bytes() const;

  /// The tensor's bytes in place; needs ReadMode::mapped or from_memory, else Error(invalid_argument).
  /// `tensor` here and below is one of tensors().
  std::span<const std::byte> data(const TensorInfo& tensor) const;
  /// Copies bytes [offset, offset + out.size()) of the tensor's data; works in every mode.
  /// Error(invalid_argument) for a range outside the tensor.
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
