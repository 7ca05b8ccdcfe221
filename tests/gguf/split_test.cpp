// Split sets: what belongs together opens as one file does; what does not is refused, naming the shard.
#include "gguf/split.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gguf/raw_file.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "support/files.h"

namespace quipu::gguf::test {
namespace {

using quipu::test::TempDir;
using testing::HasSubstr;

struct ShardKeys {
  std::uint16_t no = 0;
  std::uint16_t count = 3;
  std::int32_t n_tensors = 3;
  std::string architecture = "";
};

/// A shard as other tools write it: the `split.` keys, at most the architecture, and one tensor.
RawFile shard(const ShardKeys& keys, const std::string& tensor) {
  const bool named = !keys.architecture.empty();
  RawFile file(tensor.empty() ? 0 : 1, named ? 4 : 3);
  if (named) file.key("general.architecture", ValueType::string).text(keys.architecture);
  file.key("split.no", ValueType::u16).number(keys.no);
  file.key("split.count", ValueType::u16).number(keys.count);
  file.key("split.tensors.count", ValueType::i32).number(keys.n_tensors);
  if (!tensor.empty()) file.tensor(tensor, {8}).data(32);
  return file;
}

class SplitSet : public testing::Test {
 protected:
  SplitSet() {
    put(0, shard({.no = 0, .architecture = "llama"}, "a"));
    put(1, shard({.no = 1}, "b"));
    put(2, shard({.no = 2}, "c"));
  }

  std::filesystem::path path(std::size_t index) const { return shard_path(folder_ / "m", index, 3); }
  void put(std::size_t index, RawFile file) { quipu::test::write_bytes(path(index), file.bytes()); }
  Reader open() const { return Reader::open(path(0)); }
  /// The message without the folder.
  std::string message(std::size_t index = 0) const {
    try {
      (void)Reader::open(path(index));
    } catch (const Error& error) {
      const std::string folder = fmt::format("{}/", folder_.path().string());
      std::string text = error.message();
      for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder))
        text.erase(at, folder.size());
      return text;
    }
    return "opens";
  }

  TempDir folder_;
};

TEST_F(SplitSet, OpensAsOne) {
  const Reader reader = open();
  EXPECT_EQ(reader.n_shards(), 3u);
  ASSERT_EQ(reader.tensors().size(), 3u);
  EXPECT_EQ(reader.find_tensor("c")->shard, 2u);
  EXPECT_EQ(reader.data(*reader.find_tensor("c"))[0], std::byte{1});
  EXPECT_EQ(reader.file_bytes(), std::filesystem::file_size(path(0)) + std::filesystem::file_size(path(1)) +
                                     std::filesystem::file_size(path(2)));
}

TEST_F(SplitSet, CanBeReadOnDemand) {
  const Reader reader = Reader::open(path(0), ReadMode::read);
  std::vector<std::byte> data(32);
  reader.read_data(*reader.find_tensor("b"), 0, data);
  EXPECT_EQ(data[31], std::byte{32});
}

TEST_F(SplitSet, TheFirstShardMayHoldMetadataOnly) {
  put(0, shard({.no = 0, .n_tensors = 2, .architecture = "llama"}, ""));
  put(1, shard({.no = 1, .n_tensors = 2}, "b"));
  put(2, shard({.no = 2, .n_tensors = 2}, "c"));
  EXPECT_EQ(open().tensors().size(), 2u);
}

TEST_F(SplitSet, ALaterShardNamesTheFirst) {
  EXPECT_EQ(
      message(1),
      "m-00002-of-00003.gguf: shard 2 of 3 of a split model; open its first shard, m-00001-of-00003.gguf");
}

TEST_F(SplitSet, AMissingShardIsNamed) {
  std::filesystem::remove(path(1));
  EXPECT_EQ(message(), "m-00002-of-00003.gguf: shard 2 of 3 of the model is missing");
}

TEST_F(SplitSet, ShardsMustAgreeOnTheirCount) {
  put(2, shard({.no = 2, .count = 4}, "c"));
  EXPECT_EQ(message(), "m-00003-of-00003.gguf: key 'split.count': 4, where the first shard says 3");
}

TEST_F(SplitSet, AShardNumberMayOccurOnce) {
  put(2, shard({.no = 1}, "c"));
  EXPECT_EQ(message(), "m-00003-of-00003.gguf: key 'split.no': 1, where shard 3 of 3 must have 2");
}

TEST_F(SplitSet, TheTotalOfTensorsMustBeRight) {
  put(0, shard({.no = 0, .n_tensors = 4, .architecture = "llama"}, "a"));
  put(1, shard({.no = 1, .n_tensors = 4}, "b"));
  put(2, shard({.no = 2, .n_tensors = 4}, "c"));
  EXPECT_EQ(message(),
            "m-00001-of-00003.gguf: key 'split.tensors.count': 4, but the 3 shards hold 3 tensors");
}

TEST_F(SplitSet, ShardsMustAgreeOnTheTotalOfTensors) {
  put(1, shard({.no = 1, .n_tensors = 4}, "b"));
  EXPECT_EQ(
      message(),
      "m-00002-of-00003.gguf: key 'split.tensors.count': 4, where the first shard says 3: is it of another "
      "model?");
}

TEST_F(SplitSet, AShardOfAnotherArchitectureIsRefused) {
  put(1, shard({.no = 1, .architecture = "qwen3"}, "b"));
  EXPECT_EQ(message(),
            "m-00002-of-00003.gguf: key 'general.architecture': \"qwen3\", where the first shard says "
            "\"llama\": is it "
            "of another model?");
}

TEST_F(SplitSet, ATensorMayBeInOneShardOnly) {
  put(2, shard({.no = 2}, "b"));
  EXPECT_EQ(message(), "m-00003-of-00003.gguf: tensor 'b': also in shard 2, m-00002-of-00003.gguf");
}

TEST_F(SplitSet, AFileThatIsNoShardIsRefused) {
  put(1, RawFile(0, 0));
  EXPECT_EQ(message(), "m-00002-of-00003.gguf: key 'split.count': missing from shard 2 of 3");
}

TEST_F(SplitSet, AFaultInALaterShardNamesThatShard) {
  auto bytes = quipu::test::read_bytes(path(2));
  bytes.pop_back();
  quipu::test::write_bytes(path(2), bytes);
  EXPECT_THAT(message(), HasSubstr("m-00003-of-00003.gguf: tensor 'c': its 32 bytes of data"));
}

TEST_F(SplitSet, AFirstShardUnderAnotherNameIsRefused) {
  std::filesystem::rename(path(0), folder_ / "m.gguf");
  try {
    (void)Reader::open(folder_ / "m.gguf");
    FAIL() << "it opened";
  } catch (const Error& error) {
    EXPECT_THAT(
        error.message(),
        HasSubstr("the first of 3 shards, but not named ...-00001-of-00003.gguf, so that the others cannot"));
  }
}

TEST_F(SplitSet, AShardCannotBeReadFromMemory) {
  const auto bytes = quipu::test::read_bytes(path(0));
  EXPECT_EQ(error_of(bytes)->message(),
            "f.gguf: shard 1 of 3 of a split model, which cannot be read from memory");
}

TEST_F(SplitSet, EachShardHasItsOwnAlignment) {
  RawFile file(1, 4);
  file.key("general.alignment", ValueType::u32).number(128u);
  file.key("split.no", ValueType::u16).number(std::uint16_t{1});
  file.key("split.count", ValueType::u16).number(std::uint16_t{3});
  file.key("split.tensors.count", ValueType::i32).number(3);
  file.tensor("b", {8}).data(32, 128).data(0, 128);
  put(1, file);
  EXPECT_EQ(open().find_tensor("b")->offset % 128, 0u);
}

TEST(SplitKeys, ACountOfZeroIsAMergedModel) {
  RawFile file = shard({.no = 0, .count = 0, .n_tensors = 9}, "a");
  EXPECT_EQ(message_of(file), "opens");
}

TEST(SplitKeys, ACountOfOneIsAWholeModel) {
  RawFile file = shard({.no = 0, .count = 1, .n_tensors = 1}, "a");
  EXPECT_EQ(message_of(file), "opens");
}

TEST(SplitKeys, ANumberBeyondTheCountIsRefused) {
  RawFile file = shard({.no = 3}, "a");
  EXPECT_EQ(message_of(file), "f.gguf: key 'split.no': 3 is impossible where 'split.count' is 3");
}

class WrittenSplit : public testing::Test {
 protected:
  WrittenSplit() {
    metadata_.set("general.architecture", std::string("llama"));
    for (std::size_t i = 0; i < 10; ++i) {
      data_.push_back(std::vector<float>(8 * (i + 1), static_cast<float>(i)));
      tensors_.push_back(
          tensor_in_memory(fmt::format("t{}", i), ElementType::f32, {8, i + 1}, as_bytes_of(data_[i])));
    }
  }

  TempDir folder_;
  Metadata metadata_;
  std::vector<std::vector<float>> data_;
  std::vector<TensorToWrite> tensors_;
};

TEST_F(WrittenSplit, ReadsBackAsTheWholeFileDoes) {
  for (std::size_t n_shards = 1; n_shards <= tensors_.size(); ++n_shards) {
    const auto paths = write_split(folder_ / "m", metadata_, tensors_, n_shards);
    ASSERT_EQ(paths.size(), n_shards);
    const Reader reader = Reader::open(paths[0]);
    EXPECT_EQ(*reader.metadata().get_string("general.architecture"), "llama");
    ASSERT_EQ(reader.tensors().size(), tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      EXPECT_EQ(reader.tensors()[i].name, tensors_[i].name);
      EXPECT_EQ(reader.tensors()[i].dims, tensors_[i].dims);
      EXPECT_TRUE(std::ranges::equal(reader.data(reader.tensors()[i]), as_bytes_of(data_[i])));
    }
  }
}

TEST_F(WrittenSplit, DividesEvenlyByBytes) {
  write_split(folder_ / "m", metadata_, tensors_, 2);
  const Reader reader = Reader::open(shard_path(folder_ / "m", 0, 2));
  EXPECT_EQ(reader.find_tensor("t6")->shard, 0u);  // 28 of 55 rows
  EXPECT_EQ(reader.find_tensor("t7")->shard, 1u);
}

TEST_F(WrittenSplit, GivesEveryShardATensor) {
  data_[0].assign(8 * 1000, 0.0f);
  tensors_[0] = tensor_in_memory("t0", ElementType::f32, {8, 1000}, as_bytes_of(data_[0]));
  write_split(folder_ / "m", metadata_, tensors_, 10);
  const Reader reader = Reader::open(shard_path(folder_ / "m", 0, 10));
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(reader.tensors()[i].shard, i);
}

TEST_F(WrittenSplit, RefusesMoreShardsThanTensors) {
  EXPECT_THROW(write_split(folder_ / "m", metadata_, tensors_, 11), Error);
  EXPECT_THROW(write_split(folder_ / "m", metadata_, tensors_, 0), Error);
}

TEST_F(WrittenSplit, KeepsTheAlignmentInEveryShard) {
  metadata_.set("general.alignment", std::uint32_t{4096});
  write_split(folder_ / "m", metadata_, tensors_, 3);
  const Reader reader = Reader::open(shard_path(folder_ / "m", 0, 3));
  for (const TensorInfo& tensor : reader.tensors()) EXPECT_EQ(tensor.offset % 4096, 0u);
}

TEST_F(WrittenSplit, AShardOfAnotherModelOfTheSameShapeIsRefused) {
  write_split(folder_ / "m", metadata_, tensors_, 3);
  metadata_.set("general.name", std::string("another"));
  write_split(folder_ / "n", metadata_, tensors_, 3);
  std::filesystem::rename(shard_path(folder_ / "n", 1, 3), shard_path(folder_ / "m", 1, 3));
  try {
    (void)Reader::open(shard_path(folder_ / "m", 0, 3));
    FAIL() << "it opened";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("m-00002-of-00003.gguf: key 'split.fingerprint'"));
    EXPECT_THAT(error.message(), HasSubstr("is it of another model?"));
  }
}

TEST_F(WrittenSplit, LeavesNothingBehindWhenItFails) {
  tensors_[9].produce = [](const auto&) {};
  EXPECT_THROW(write_split(folder_ / "m", metadata_, tensors_, 3), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace quipu::gguf::test
