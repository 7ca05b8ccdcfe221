// Where tests find their data and put their files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quipu::test {

/// tests/data of the source tree.
std::filesystem::path data_dir();

/// The folder of shared models and reference data beside the project; nothing where there is none. Tests that
/// need it are skipped then.
std::optional<std::filesystem::path> shared_dir();

/// A new, empty folder, removed with its contents at the end of the scope.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Whole files; these throw std::runtime_error naming the path.
std::vector<std::byte> read_bytes(const std::filesystem::path& path);
std::vector<float> read_f32(
    const std::filesystem::path& path);  ///< little-endian float32, as the goldens hold it
void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace quipu::test
