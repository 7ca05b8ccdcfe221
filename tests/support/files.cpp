#include "support/files.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace quipu::test {

std::filesystem::path data_dir() {
  return std::filesystem::path(QUIPU_SOURCE_DIR) / "tests/data";
}

std::optional<std::filesystem::path> shared_dir() {
  const std::filesystem::path folder = std::filesystem::path(QUIPU_SOURCE_DIR) / "../shared";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return std::nullopt;
  return folder;
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "quipu-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create a folder " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::vector<float> read_f32(const std::filesystem::path& path) {
  static_assert(std::endian::native == std::endian::little);
  const std::vector<std::byte> bytes = read_bytes(path);
  if (bytes.size() % sizeof(float) != 0)
    throw std::runtime_error(path.string() + " does not hold whole floats");
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  write_bytes(path, std::as_bytes(std::span(text)));
}

}  // namespace quipu::test
