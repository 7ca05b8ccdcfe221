// The program stands on the public interface alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace quipu::test {
namespace {

TEST(Layering, TheProgramIncludesOnlyThePublicInterface) {
  std::size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(QUIPU_SOURCE_DIR "/src/cli")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    ++n_files;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("#include \"")) continue;
      const std::string included = line.substr(std::string("#include \"").size());
      EXPECT_TRUE(included.starts_with("cli/") || included.starts_with("quipu/"))
          << entry.path() << ": " << line;
    }
  }
  EXPECT_GT(n_files, 10u);
}

}  // namespace
}  // namespace quipu::test
