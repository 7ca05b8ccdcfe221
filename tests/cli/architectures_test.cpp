#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.h"
#include "support/files.h"

namespace quipu::test {
namespace {

using testing::HasSubstr;

TEST(Architectures, AreListedByFamily) {
  const Result result = run({"architectures"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("qwen3moe"));
  const nlohmann::json list = run({"architectures", "--json"}).json();
  const nlohmann::json llama = {{"name", "llama"}, {"family", "llama"}};
  EXPECT_NE(std::find(list.begin(), list.end(), llama), list.end());
}

TEST(Architectures, PagesAreWrittenIntoAFolder) {
  const TempDir folder;
  EXPECT_EQ(run({"architectures", "--markdown", folder.path().string()}).exit_code, 0);
  EXPECT_GT(read_bytes(folder / "llama.md").size(), 1000u);
  EXPECT_EQ(run({"architectures", "--markdown", (folder / "none").string()}).exit_code, 2);
}

}  // namespace
}  // namespace quipu::test
