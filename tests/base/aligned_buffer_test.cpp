// Aligned buffers, below and above the size at which they come from the system page by page.
#include "base/aligned_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"

namespace quipu {
namespace {

using ::testing::HasSubstr;

bool is_zero(const AlignedBuffer& buffer) {
  const auto bytes = buffer.bytes();
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

std::uintptr_t address(const AlignedBuffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.bytes().data());
}

TEST(AlignedBuffer, StartsOnACacheLineAndIsZero) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{63}, std::size_t{1000}, AlignedBuffer::kLarge}) {
    const AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(address(buffer) % AlignedBuffer::kAlignment, 0u) << size;
    EXPECT_TRUE(is_zero(buffer)) << size;
  }
}

TEST(AlignedBuffer, StartsOnAHugePageWhenLarge) {
  const AlignedBuffer buffer(AlignedBuffer::kLarge + 1);
  EXPECT_EQ(address(buffer) % AlignedBuffer::kHugePage, 0u);
  EXPECT_TRUE(is_zero(buffer));
}

TEST(AlignedBuffer, CanBeWrittenToItsLastByte) {
  for (const std::size_t size : {std::size_t{65}, AlignedBuffer::kLarge + 12345}) {
    AlignedBuffer buffer(size);
    std::ranges::fill(buffer.bytes(), std::byte{0xff});
    EXPECT_EQ(buffer.bytes().back(), std::byte{0xff});
  }
}

TEST(AlignedBuffer, IsSeenAsWholeElements) {
  AlignedBuffer buffer(11);
  EXPECT_EQ(buffer.as<float>().size(), 2u);
  buffer.as<float>()[1] = 1.0f;
  EXPECT_EQ(std::as_const(buffer).as<std::uint32_t>()[1], 0x3f800000u);
}

TEST(AlignedBuffer, OfNoBytesIsEmpty) {
  EXPECT_TRUE(AlignedBuffer(0).empty());
  EXPECT_TRUE(AlignedBuffer().as<double>().empty());
}

TEST(AlignedBuffer, MovesWithoutCopying) {
  AlignedBuffer first(100);
  const std::byte* data = first.bytes().data();
  AlignedBuffer second(std::move(first));
  AlignedBuffer third(10);
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), data);
  EXPECT_EQ(third.size(), 100u);
}

TEST(AlignedBuffer, NamesTheSizeItCannotGet) {
  for (const std::size_t size : {std::numeric_limits<std::size_t>::max(), std::size_t{1} << 60}) {
    try {
      const AlignedBuffer buffer(size);
      FAIL() << "allocated " << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      EXPECT_THAT(error.message(), HasSubstr(std::to_string(size)));
    }
  }
}

}  // namespace
}  // namespace quipu
