// Well-formed files of both versions, in each way of opening them.
#include "gguf/reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "gguf/raw_file.h"
#include "gguf/writer.h"
#include "support/files.h"

namespace quipu::gguf::test {
namespace {

using quipu::test::TempDir;
using testing::ElementsAre;

/// Two tensors, the later one first in the table.
RawFile two_tensors(std::uint32_t version) {
  RawFile file(2, 1, version);
  file.key("general.architecture", ValueType::string).text("llama");
  file.tensor("b", {4, 2}, kF32, 64).tensor("a", {9}).data(96);
  return file;
}

std::vector<std::byte> bytes_from(std::uint8_t first, std::size_t n) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < n; ++i) bytes.push_back(static_cast<std::byte>(first + i));
  return bytes;
}

class ReaderOfVersion : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ReaderOfVersion, GivesMetadataAndTensors) {
  RawFile file = two_tensors(GetParam());
  const Reader reader = Reader::from_memory(file.bytes(), "f.gguf");
  EXPECT_EQ(reader.version(), GetParam());
  EXPECT_EQ(*reader.metadata().get_string("general.architecture"), "llama");
  ASSERT_EQ(reader.tensors().size(), 2u);
  const TensorInfo& first = reader.tensors()[0];
  EXPECT_EQ(first.name, "b");
  EXPECT_THAT(first.dims, ElementsAre(4u, 2u));
  EXPECT_EQ(first.n_elements, 8u);
  EXPECT_EQ(first.bytes, 32u);
  EXPECT_THAT(reader.data(first), testing::ElementsAreArray(bytes_from(65, 32)));
}
INSTANTIATE_TEST_SUITE_P(Versions, ReaderOfVersion, testing::Values(2u, 3u));

TEST(Reader, FindsTensorsByName) {
  RawFile file = two_tensors(3);
  const Reader reader = Reader::from_memory(file.bytes(), "f.gguf");
  EXPECT_EQ(reader.find_tensor("a"), &reader.tensors()[1]);
  EXPECT_EQ(reader.find_tensor("c"), nullptr);
}

class ReaderInMode : public testing::TestWithParam<ReadMode> {};

TEST_P(ReaderInMode, CopiesAnyPartOfATensor) {
  const TempDir folder;
  quipu::test::write_bytes(folder / "m.gguf", two_tensors(3).bytes());
  const Reader reader = Reader::open(folder / "m.gguf", GetParam());
  std::vector<std::byte> part(5);
  reader.read_data(*reader.find_tensor("b"), 27, part);
  EXPECT_EQ(part, bytes_from(65 + 27, 5));
}

TEST_P(ReaderInMode, RefusesAPartOutsideTheTensor) {
  const TempDir folder;
  quipu::test::write_bytes(folder / "m.gguf", two_tensors(3).bytes());
  const Reader reader = Reader::open(folder / "m.gguf", GetParam());
  std::vector<std::byte> part(5);
  EXPECT_THROW(reader.read_data(*reader.find_tensor("b"), 28, part), Error);
  EXPECT_THROW(reader.read_data(*reader.find_tensor("b"), std::numeric_limits<std::uint64_t>::max(), part),
               Error);
}

TEST_P(ReaderInMode, ReportsSizeAndOrigin) {
  const TempDir folder;
  quipu::test::write_bytes(folder / "m.gguf", two_tensors(3).bytes());
  const Reader reader = Reader::open(folder / "m.gguf", GetParam());
  EXPECT_EQ(reader.file_bytes(), two_tensors(3).bytes().size());
  EXPECT_EQ(reader.origin(), (folder / "m.gguf").string());
  EXPECT_EQ(reader.n_shards(), 1u);
}

TEST_P(ReaderInMode, ParsesAHeaderLargerThanItsWindow) {
  const TempDir folder;
  Metadata metadata;
  metadata.set("long", std::string(300 * 1024, 'x') + "end");
  metadata.set("after", std::uint32_t{7});
  write_file(folder / "m.gguf", metadata, {});
  const Reader reader = Reader::open(folder / "m.gguf", GetParam());
  EXPECT_TRUE(reader.metadata().get_string("long")->ends_with("xend"));
  EXPECT_EQ(reader.metadata().get_u32("after"), 7u);
}

TEST_P(ReaderInMode, AMissingFileIsAnIoError) {
  const TempDir folder;
  try {
    (void)Reader::open(folder / "none.gguf", GetParam());
    FAIL() << "it opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
  }
}
INSTANTIATE_TEST_SUITE_P(Modes, ReaderInMode, testing::Values(ReadMode::mapped, ReadMode::read));

TEST(Reader, MappedDataCanBeReadAfterItsRelease) {
  const TempDir folder;
  const std::vector<float> values(100'000, 2.5f);
  write_file(folder / "m.gguf", Metadata(),
             {tensor_in_memory("t", ElementType::f32, {100'000}, as_bytes_of(values))});
  const Reader reader = Reader::open(folder / "m.gguf");
  reader.release(reader.tensors()[0]);
  EXPECT_TRUE(std::ranges::equal(reader.data(reader.tensors()[0]), as_bytes_of(values)));
}

TEST(Reader, ReadModeOffersNoDataInPlace) {
  const TempDir folder;
  quipu::test::write_bytes(folder / "m.gguf", two_tensors(3).bytes());
  const Reader reader = Reader::open(folder / "m.gguf", ReadMode::read);
  try {
    (void)reader.data(reader.tensors()[0]);
    FAIL() << "it gave data";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

TEST(Reader, AFileOfMetadataAloneOpens) {
  RawFile file(0, 1);
  file.key("k", ValueType::u8).number(std::uint8_t{1});
  EXPECT_EQ(message_of(file), "opens");
}

TEST(Reader, AHugeAlignmentWithoutTensorsOpens) {
  RawFile file(0, 1);
  file.key("general.alignment", ValueType::u32).number(1u << 31);
  EXPECT_EQ(message_of(file), "opens");
}

TEST(Reader, ValuesMayHoldAnyBytes) {
  RawFile file(0, 1);
  file.key("k", ValueType::string).text(std::string_view("\0\xff\n", 3));
  const Reader reader = Reader::from_memory(file.bytes(), "f.gguf");
  EXPECT_EQ(*reader.metadata().get_string("k"), std::string("\0\xff\n", 3));
}

TEST(Reader, AnotherAlignmentMovesTheData) {
  RawFile file(1, 1);
  file.key("general.alignment", ValueType::u32).number(64u).tensor("t", {2}, kF32, 64).data(72, 64);
  file.data(0, 64);
  const Reader reader = Reader::from_memory(file.bytes(), "f.gguf");
  EXPECT_EQ(reader.alignment(), 64u);
  EXPECT_EQ(reader.tensors()[0].offset % 64, 0u);
  EXPECT_THAT(reader.data(reader.tensors()[0]), testing::ElementsAreArray(bytes_from(65, 8)));
}

TEST(Reader, AFileWithoutPaddingBehindItsLastTensorOpens) {
  RawFile file(1, 0);
  file.tensor("t", {1}).data(4);
  EXPECT_EQ(message_of(file), "opens");
}

TEST(Reader, ALongListOfStringsOpensFast) {
  constexpr std::size_t kStrings = 150'000;
  RawFile file(0, 1);
  file.array_key("tokenizer.ggml.tokens", 8, kStrings);
  for (std::size_t i = 0; i < kStrings; ++i) file.text(fmt::format("token{}", i));
  const auto start = std::chrono::steady_clock::now();
  const Reader reader = Reader::from_memory(file.bytes(), "f.gguf");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
  EXPECT_EQ(reader.metadata().get_strings("tokenizer.ggml.tokens")->back(), "token149999");
}

TEST(Reader, OpensARealModel) {
  const auto shared = quipu::test::shared_dir();
  if (!shared) GTEST_SKIP() << "the shared models are not beside the project";
  for (const ReadMode mode : {ReadMode::mapped, ReadMode::read}) {
    const Reader reader = Reader::open(*shared / "models/stories260K.gguf", mode);
    EXPECT_EQ(reader.tensors().size(), 47u);
    EXPECT_EQ(reader.metadata().get_u32("llama.block_count"), 5u);
    EXPECT_EQ(reader.metadata().get_strings("tokenizer.ggml.tokens")->size(), 512u);
  }
}

}  // namespace
}  // namespace quipu::gguf::test
