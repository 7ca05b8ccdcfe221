// Files with one fault each: every one gives one line that names the file, the place and the fault.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <bit>
#include <chrono>

#include "gguf/raw_file.h"

namespace quipu::gguf::test {
namespace {

using namespace std::chrono_literals;

std::string message_with_tensor(std::vector<std::uint64_t> dims, std::uint32_t type = kF32) {
  RawFile file(1, 0);
  file.tensor("t.weight", std::move(dims), type).data(1024);
  return message_of(file);
}

template <typename T>
std::string message_with_alignment(ValueType type, T value) {
  RawFile file(0, 1);
  file.key("general.alignment", type).number(value);
  return message_of(file);
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(HostileFile, AnEmptyOneIsNotGguf) {
  RawFile file;
  EXPECT_EQ(message_of(file), "f.gguf: not a GGUF file: only 0 bytes long");
}

TEST(HostileFile, AnotherMagicIsNotGguf) {
  RawFile file;
  file.raw("PK\x03\x04 and so on");
  EXPECT_EQ(message_of(file), "f.gguf: not a GGUF file: it begins with 'PK\\x03\\x04'");
}

TEST(HostileFile, Version1IsObsolete) {
  RawFile file(0, 0, 1);
  EXPECT_EQ(message_of(file), "f.gguf: GGUF version 1 is obsolete; convert the model again to get version 3");
  EXPECT_EQ(error_of(file.bytes())->code(), ErrorCode::unsupported);
}

TEST(HostileFile, ALaterVersionIsUnsupported) {
  RawFile file(0, 0, 4);
  EXPECT_EQ(message_of(file), "f.gguf: GGUF version 4; only 2 and 3 can be read");
}

TEST(HostileFile, ABigEndianOneIsNamedAsSuch) {
  RawFile file(0, 0, 0x03000000);
  EXPECT_EQ(message_of(file), "f.gguf: a big-endian GGUF file; only little-endian ones can be read");
}

TEST(HostileFile, ADimensionOfZeroIsRefused) {
  EXPECT_EQ(message_with_tensor({4, 0}), "f.gguf: tensor 't.weight': dimension of size 0 in [4, 0]");
  EXPECT_EQ(message_with_tensor({0}), "f.gguf: tensor 't.weight': dimension of size 0 in [0]");
  EXPECT_EQ(message_with_tensor({4, 0, 2}), "f.gguf: tensor 't.weight': dimension of size 0 in [4, 0, 2]");
}

TEST(HostileFile, DimensionsWhoseProductOverflowsAreRefused) {
  const auto huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(message_with_tensor({huge}),
            "f.gguf: tensor 't.weight': dimensions [18446744073709551615] are too large");
  EXPECT_EQ(message_with_tensor({kHuge, kHuge}),
            "f.gguf: tensor 't.weight': dimensions [1152921504606846976, 1152921504606846976] are too large");
  EXPECT_EQ(message_with_tensor({kHuge * 4}),  // the elements fit, the bytes do not
            "f.gguf: tensor 't.weight': dimensions [4611686018427387904] are too large");
}

TEST(HostileFile, NoOrTooManyDimensionsAreRefused) {
  EXPECT_EQ(message_with_tensor({}), "f.gguf: tensor 't.weight': 0 dimensions, where 1 to 4 are possible");
  EXPECT_EQ(message_with_tensor({1, 1, 1, 1, 1}),
            "f.gguf: tensor 't.weight': 5 dimensions, where 1 to 4 are possible");
}

TEST(HostileFile, ABlockTypeNeedsWholeBlocksInItsRows) {
  EXPECT_EQ(
      message_with_tensor({48, 2}, 8),
      "f.gguf: tensor 't.weight': innermost dimension 48 is not a multiple of the block size 32 of Q8_0");
}

TEST(HostileFile, ATensorTypeThatCannotBeReadIsNamed) {
  EXPECT_EQ(message_with_tensor({256}, 16),
            "f.gguf: tensor 't.weight': element type IQ2_XXS is not supported");
}

TEST(HostileFile, AnUnknownTensorTypeIsNamedByNumber) {
  EXPECT_EQ(message_with_tensor({256}, 4242), "f.gguf: tensor 't.weight': unknown element type 4242");
}

TEST(HostileFile, AnAlignmentMustBeAPowerOfTwo) {
  EXPECT_EQ(message_with_alignment(ValueType::u32, 0u),
            "f.gguf: key 'general.alignment': 0 is not a power of two of at least 8");
  EXPECT_EQ(message_with_alignment(ValueType::u32, 3u),
            "f.gguf: key 'general.alignment': 3 is not a power of two of at least 8");
  EXPECT_EQ(message_with_alignment(ValueType::u32, 1u),
            "f.gguf: key 'general.alignment': 1 is not a power of two of at least 8");
}

TEST(HostileFile, AnAlignmentOfAnotherTypeIsRefused) {
  EXPECT_EQ(message_with_alignment(ValueType::i32, 32),
            "f.gguf: key 'general.alignment': expected u32, found i32");
  RawFile file(0, 1);
  file.key("general.alignment", ValueType::string).text("32");
  EXPECT_EQ(message_of(file), "f.gguf: key 'general.alignment': expected u32, found string");
}

TEST(HostileFile, AnAlignmentBeyondTheFileLeavesNoRoomForTensors) {
  RawFile file(1, 1);
  file.key("general.alignment", ValueType::u32).number(1u << 31).tensor("t", {4}).data(64);
  EXPECT_EQ(message_of(file),
            "f.gguf: tensor 't': its 16 bytes of data at byte 2147483648 are out of file bounds (160 bytes: "
            "is it cut "
            "short?)");
}

TEST(HostileFile, AnEmptyKeyIsRefused) {
  RawFile file(0, 1);
  file.key("", ValueType::u32).number(1u);
  EXPECT_EQ(message_of(file), "f.gguf: key 1 of 1: its name is empty");
}

TEST(HostileFile, AnOverlongKeyIsRefused) {
  RawFile file(0, 1);
  file.key(std::string(65536, 'k'), ValueType::u32).number(1u);
  EXPECT_EQ(message_of(file), "f.gguf: key 1 of 1: its name has 65536 bytes, over 65535");
}

TEST(HostileFile, AKeyMayOccurOnce) {
  RawFile file(0, 2);
  file.key("a.b", ValueType::u32).number(1u).key("a.b", ValueType::u32).number(1u);
  EXPECT_EQ(message_of(file), "f.gguf: key 'a.b': occurs twice");
}

TEST(HostileFile, ATensorNameMayOccurOnce) {
  RawFile file(2, 0);
  file.tensor("t", {8}).tensor("t", {8}, kF32, 32).data(64);
  EXPECT_EQ(message_of(file), "f.gguf: tensor 't': occurs twice");
}

TEST(HostileFile, AnEmptyTensorNameIsRefused) {
  RawFile file(1, 0);
  file.tensor("", {8}).data(64);
  EXPECT_EQ(message_of(file), "f.gguf: tensor 1 of 1: its name is empty");
}

TEST(HostileFile, AnUnknownValueTypeIsNamed) {
  RawFile file(0, 1);
  file.text("a.b").number(13u).number(0u);
  EXPECT_EQ(message_of(file), "f.gguf: key 'a.b': unknown value type 13");
}

TEST(HostileFile, AnArrayOfAnUnknownTypeIsNamed) {
  RawFile file(0, 1);
  file.array_key("a.b", 77, 0);
  EXPECT_EQ(message_of(file), "f.gguf: key 'a.b': an array of unknown value type 77");
}

TEST(HostileFile, AnArrayOfArraysIsRefused) {
  RawFile file(0, 1);
  file.array_key("a.b", 9, 1).number(4u).number(std::uint64_t{0});
  EXPECT_EQ(message_of(file), "f.gguf: key 'a.b': an array of arrays, which cannot be read");
}

TEST(HostileFile, ABoolIsZeroOrOne) {
  RawFile file(0, 1);
  file.key("a.b", ValueType::boolean).number(std::uint8_t{2});
  EXPECT_EQ(message_of(file), "f.gguf: key 'a.b': a bool is stored as 2, where 0 or 1 are possible");
}

TEST(HostileFile, AStringBeyondTheEndIsRefused) {
  RawFile file(0, 1);
  file.key("a.b", ValueType::string).number(std::uint64_t{1} << 63);
  EXPECT_EQ(message_of(file),
            "f.gguf: key 'a.b': its value of 9223372036854775808 bytes is out of file bounds at byte 47 of "
            "47: is the "
            "file cut short?");
}

TEST(HostileFile, AnArrayBeyondTheEndIsRefused) {
  RawFile file(0, 1);
  file.array_key("a.b", 0, kHuge).number(std::uint64_t{0});
  EXPECT_EQ(message_of(file),
            "f.gguf: key 'a.b': 1152921504606846976 elements are out of file bounds at byte 51 of 59: is the "
            "file cut "
            "short?");
}

TEST(HostileFile, CountsThatCannotFitCostNeitherTimeNorMemory) {
  const long before = peak_kilobytes();
  const auto start = std::chrono::steady_clock::now();
  for (const std::uint64_t count :
       {kHuge, std::uint64_t{0x7fffffffffffffff}, std::numeric_limits<std::uint64_t>::max(),
        std::numeric_limits<std::uint64_t>::max() / sizeof(TensorInfo) - 1, std::uint64_t{1}}) {
    RawFile tensors(count, 0);
    RawFile keys(0, count);
    EXPECT_EQ(error_of(tensors.bytes())->code(), ErrorCode::bad_file) << count;
    EXPECT_EQ(error_of(keys.bytes())->code(), ErrorCode::bad_file) << count;
    for (std::uint32_t type = 0; type <= 12; ++type) {
      RawFile array(0, 1);
      array.array_key("k", type, count);
      EXPECT_TRUE(error_of(array.bytes())) << count << " of type " << type;
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
  EXPECT_LT(peak_kilobytes() - before, 50 * 1024);
}

TEST(HostileFile, DataBeyondTheEndIsRefused) {
  RawFile file(1, 0);
  file.tensor("t", {8}, kF32, 32).data(32);
  EXPECT_EQ(message_of(file),
            "f.gguf: tensor 't': its 32 bytes of data at byte 96 are out of file bounds (96 bytes: is it cut "
            "short?)");
}

TEST(HostileFile, AnOffsetThatWrapsAroundIsRefused) {
  RawFile file(1, 0);
  file.tensor("t", {8}, kF32, std::numeric_limits<std::uint64_t>::max() - 31).data(32);
  EXPECT_EQ(message_of(file), "f.gguf: tensor 't': data offset 18446744073709551584 is out of file bounds");
}

TEST(HostileFile, AMisalignedOffsetIsRefused) {
  RawFile file(1, 0);
  file.tensor("t", {8}, kF32, 4).data(64);
  EXPECT_EQ(message_of(file), "f.gguf: tensor 't': data offset 4 is not a multiple of the alignment 32");
}

TEST(HostileFile, TensorsMayNotShareData) {
  RawFile file(2, 0);
  file.tensor("a", {16}).tensor("b", {8}, kF32, 32).data(64);
  EXPECT_EQ(message_of(file), "f.gguf: tensor 'b': its data overlaps that of 'a'");
}

TEST(HostileFile, PaddingCutShortIsFound) {
  RawFile file(1, 0);
  file.tensor("t", {1}).data(20);
  EXPECT_EQ(
      message_of(file),
      "f.gguf: tensor 't': the padding behind its data is out of file bounds (84 bytes: is it cut short?)");
}

TEST(HostileFile, NamesInMessagesStayOnOneLine) {
  RawFile file(1, 0);
  file.tensor("a\nb\x1b[31m", {0}).data(32);
  EXPECT_EQ(message_of(file), "f.gguf: tensor 'a\\nb\\x1b[31m': dimension of size 0 in [0]");
}

TEST(HostileFile, ManyTinyKeysCostAFewTimesTheirSize) {
  constexpr std::uint32_t kKeys = 300'000;
  RawFile file(0, kKeys);
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    file.key(std::string_view(reinterpret_cast<const char*>(&i), 3), ValueType::u8).number(std::uint8_t{0});
  }
  const long before = peak_kilobytes();
  const Reader reader = Reader::from_memory(file.bytes(), "f.gguf");
  EXPECT_EQ(reader.metadata().entries().size(), kKeys);
  EXPECT_LT((peak_kilobytes() - before) * 1024, 10 * static_cast<long>(file.bytes().size()));
}

}  // namespace
}  // namespace quipu::gguf::test
