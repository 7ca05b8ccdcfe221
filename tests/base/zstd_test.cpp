#include "base/zstd.h"

#include <gtest/gtest.h>

#include "quipu/error.h"

namespace quipu::test {
namespace {

class Zstd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_zstd()) GTEST_SKIP() << "built without zstd";
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i * i / 7);
  }
  std::vector<std::byte> bytes_ = std::vector<std::byte>(10000);
};

TEST_F(Zstd, GivesBackWhatWasCompressed) {
  std::vector<std::byte> back(bytes_.size());
  EXPECT_TRUE(zstd_decompress(zstd_compress(bytes_), back));
  EXPECT_EQ(back, bytes_);
  EXPECT_TRUE(zstd_decompress(zstd_compress({}), {}));
}

TEST_F(Zstd, WritesWithinItsOutputOnly) {
  const auto compressed = zstd_compress(bytes_);
  std::vector<std::byte> back(bytes_.size(), std::byte{0x55});
  EXPECT_FALSE(zstd_decompress(compressed, std::span(back).first(100)));
  for (std::size_t i = 100; i < back.size(); ++i) ASSERT_EQ(back[i], std::byte{0x55});
}

TEST_F(Zstd, RefusesOtherLengthsAndWhatIsCut) {
  const auto compressed = zstd_compress(bytes_);
  std::vector<std::byte> back(bytes_.size() + 1);
  EXPECT_FALSE(zstd_decompress(compressed, back));
  back.resize(bytes_.size());
  for (const std::size_t n : {std::size_t{0}, std::size_t{3}, compressed.size() - 1}) {
    EXPECT_FALSE(zstd_decompress(std::span(compressed).first(n), back)) << n;
  }
}

TEST(WithoutZstd, NothingIsDone) {
  if (has_zstd()) GTEST_SKIP() << "built with zstd";
  EXPECT_THROW(zstd_compress({}), Error);
  EXPECT_THROW(zstd_decompress({}, {}), Error);
}

}  // namespace
}  // namespace quipu::test
