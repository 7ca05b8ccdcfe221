#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace quipu {
namespace {

[[noreturn]] void fail_io(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  fail(ErrorCode::io, "{}: cannot {}: {}", path.string(), action, std::generic_category().message(code));
}

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

File::File(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ =
      ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not make us wait for a writer
  if (descriptor_ < 0) fail_io(path_, "open");
  struct stat info {};
  const bool known = ::fstat(descriptor_, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    const int code = errno;
    ::close(std::exchange(descriptor_, -1));
    if (known) fail(ErrorCode::io, "{}: cannot open: not a regular file", path_.string());
    errno = code;
    fail_io(path_, "open");
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

void File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::size_t step = std::min<std::size_t>(out.size(), std::size_t{1} << 30);
    const ssize_t got = ::pread(descriptor_, out.data(), step, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io(path_, "read");
    if (got == 0)
      fail(ErrorCode::bad_file, "{}: the file ends at byte {}, inside data that is needed", path_.string(),
           offset);
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

MappedFile::MappedFile(const File& file) {
  if (file.size() == 0) return;
  void* address = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (address == MAP_FAILED) fail_io(file.path(), "map");
  bytes_ = {static_cast<const std::byte*>(address), file.size()};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::release(std::size_t offset, std::size_t length) const noexcept {
  if (offset >= bytes_.size()) return;
  const std::size_t page = page_size();
  const std::size_t end = offset + std::min(length, bytes_.size() - offset);
  const std::size_t first = (offset + page - 1) / page * page;  // whole pages only
  const std::size_t last = end / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

AtomicFileWriter::AtomicFileWriter(std::filesystem::path path) : path_(std::move(path)) {
  // O_EXCL decides between writers; the counter and the random part only keep them from meeting. The name
  // does not grow with the target's, which may be as long as the file system allows.
  static std::atomic<unsigned> counter{0};
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const unsigned number = counter.fetch_add(1, std::memory_order_relaxed);
    const std::string name =
        fmt::format(".quipu-{}-{}-{:08x}.tmp", ::getpid(), number, std::random_device{}());
    temporary_ = (path_.parent_path() / name).string();
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) return;
    if (errno != EEXIST && errno != EINTR) break;
  }
  fail_io(path_, "create a file beside it");
}

AtomicFileWriter::~AtomicFileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_io(path_, "write");
    position_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFileWriter::commit() {
  if (::fsync(descriptor_) != 0) fail_io(path_, "sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_io(path_, "replace");
  ::close(std::exchange(descriptor_, -1));
  std::filesystem::path folder = path_.parent_path();
  if (folder.empty()) folder = ".";
  const int folder_descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor < 0) return;  // the rename stands; only its durability could not be forced
  ::fsync(folder_descriptor);
  ::close(folder_descriptor);
}

}  // namespace quipu
