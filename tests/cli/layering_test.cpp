// The program stands on the public interface alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

namespace quipu::test {
namespace {

TEST(Layering, TheProgramIncludesOnlyThePublicInterface) {
  const std::regex include(R"(^\s*#include "([^/"]+)/.*)");
  std::size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(QUIPU_SOURCE_DIR "/src/cli")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    ++n_files;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_match(line, match, include)) continue;
      EXPECT_TRUE(match[1] == "cli" || match[1] == "quipu") << entry.path() << ": " << line;
    }
  }
  EXPECT_GT(n_files, 10u);
}

}  // namespace
}  // namespace quipu::test
