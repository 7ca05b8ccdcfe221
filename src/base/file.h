// Files: read at an offset, mapped read-only, and written so that a reader sees the old or the new one whole.
// Every failure is Error(io) naming the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace quipu {

/// A file open for reading.
class File {
 public:
  explicit File(std::filesystem::path path);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  int descriptor() const { return descriptor_; }

  /// Fills `out` from byte `offset`; a file that ends before that is an Error(bad_file).
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The whole of a file in memory, shared with the page cache. Its contents must not be cut short while
/// mapped.
class MappedFile {
 public:
  explicit MappedFile(const File& file);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

  /// Tells the system that these bytes will not be needed soon; reading them again works and costs a read.
  void release(std::size_t offset, std::size_t length) const noexcept;

 private:
  std::span<const std::byte> bytes_;
};

/// Writes a file under a temporary name in the same folder. commit() syncs it and renames it into place;
/// without a commit the temporary file is removed and the target is untouched.
class AtomicFileWriter {
 public:
  explicit AtomicFileWriter(std::filesystem::path path);
  ~AtomicFileWriter();
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  std::uint64_t position() const { return position_; }
  void commit();

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_ = -1;
  std::uint64_t position_ = 0;
};

}  // namespace quipu
