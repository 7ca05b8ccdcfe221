#include "gguf/name_index.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quipu::gguf {
namespace {

class NameIndexTest : public testing::Test {
 protected:
  const std::string& at(std::size_t place) const { return names_[place]; }
  void add(std::string name) {
    names_.push_back(std::move(name));
    index_.add([this](std::size_t place) -> const std::string& { return at(place); });
  }
  std::optional<std::size_t> find(std::string_view name) const {
    return index_.find(name, [this](std::size_t place) -> const std::string& { return at(place); });
  }

  std::vector<std::string> names_;
  NameIndex index_;
};

TEST_F(NameIndexTest, FindsNothingWhenEmpty) {
  EXPECT_EQ(find("a"), std::nullopt);
}

TEST_F(NameIndexTest, FindsEveryNameWhileItGrows) {
  for (std::size_t i = 0; i < 5000; ++i) add(std::to_string(i));
  for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(find(std::to_string(i)), i);
}

TEST_F(NameIndexTest, DoesNotFindOtherNames) {
  for (std::size_t i = 0; i < 100; ++i) add(std::to_string(i));
  EXPECT_EQ(find("100"), std::nullopt);
  EXPECT_EQ(find(""), std::nullopt);
}

}  // namespace
}  // namespace quipu::gguf
