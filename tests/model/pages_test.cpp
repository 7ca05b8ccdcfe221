// The pages of docs/architectures are what the tables say.
#include <gtest/gtest.h>

#include "model/arch/pages.h"
#include "support/files.h"

namespace quipu {
namespace {

std::string committed(const std::string& page) {
  const auto bytes =
      test::read_bytes(std::filesystem::path(QUIPU_SOURCE_DIR) / "docs" / "architectures" / (page + ".md"));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr const char* kHint = "run: quipu architectures --markdown docs/architectures";

TEST(ArchitecturePages, AreWhatTheTablesSay) {
  for (const ArchitectureFamily& family : architecture_families())
    EXPECT_TRUE(committed(std::string(family.name)) == family_page(family)) << family.name << ": " << kHint;
  EXPECT_TRUE(committed("README") == families_page()) << kHint;
}

TEST(ArchitecturePages, ShowKeysTensorsAndPapersOfEach) {
  for (const ArchitectureFamily& family : architecture_families()) {
    const std::string page = family_page(family);
    for (const Architecture& arch : family.architectures) {
      EXPECT_FALSE(arch.paper.empty()) << arch.name;
      EXPECT_EQ(find_architecture(arch.name), &arch);
      EXPECT_NE(page.find("## " + std::string(arch.name) + "\n"), std::string::npos);
    }
    EXPECT_NE(page.find("`embedding_length`"), std::string::npos);
    EXPECT_NE(page.find("`token_embd.weight`"), std::string::npos);
  }
}

}  // namespace
}  // namespace quipu
