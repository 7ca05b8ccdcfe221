// What the writer writes, the reader reads; what the format cannot hold, the writer refuses.
#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gguf/raw_file.h"
#include "gguf/reader.h"
#include "support/files.h"

namespace quipu::gguf::test {
namespace {

using quipu::test::TempDir;

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

TensorToWrite small_tensor(std::string name) {
  return tensor_in_memory(std::move(name), ElementType::f32, {3, 2}, as_bytes_of(kValues));
}

template <typename Call>
std::string refusal_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.message();
  }
  return "not refused";
}

std::string refusal(const std::vector<TensorToWrite>& tensors, const Metadata& metadata = Metadata("m")) {
  return refusal_of([&] { (void)write_memory(metadata, tensors); });
}

class RoundTrip : public testing::TestWithParam<Value> {};

TEST_P(RoundTrip, KeepsTheValueAndItsType) {
  Metadata metadata;
  metadata.set("k", GetParam());
  const std::vector<std::byte> bytes = write_memory(metadata, {});
  const Reader reader = Reader::from_memory(bytes, "f.gguf");
  EXPECT_EQ(reader.metadata().entries(), metadata.entries());
}

template <typename T>
Value extremes() {
  return Array(std::vector<T>{std::numeric_limits<T>::lowest(), T{0}, T{1}, std::numeric_limits<T>::max()});
}

INSTANTIATE_TEST_SUITE_P(Scalars, RoundTrip,
                         testing::Values(Value(std::uint8_t{255}), Value(std::int8_t{-128}),
                                         Value(std::uint16_t{65535}), Value(std::int16_t{-32768}),
                                         Value(std::uint32_t{4294967295u}), Value(std::int32_t{-2147483647}),
                                         Value(0.1f), Value(true), Value(false), Value(std::string()),
                                         Value(std::string("a\0\xff", 3)),
                                         Value(std::numeric_limits<std::uint64_t>::max()),
                                         Value(std::numeric_limits<std::int64_t>::min()), Value(1e300)));
INSTANTIATE_TEST_SUITE_P(
    Arrays, RoundTrip,
    testing::Values(extremes<std::uint8_t>(), extremes<std::int8_t>(), extremes<std::uint16_t>(),
                    extremes<std::int16_t>(), extremes<std::uint32_t>(), extremes<std::int32_t>(),
                    extremes<float>(), extremes<std::uint64_t>(), extremes<std::int64_t>(),
                    extremes<double>(), Value(Array(std::vector<Bool>{{true}, {false}, {true}})),
                    Value(Array(std::vector<std::string>{"", "a", std::string(1000, 'b')})),
                    Value(Array(std::vector<std::string>{})), Value(Array(std::vector<std::uint8_t>{}))));

TEST(Writer, KeepsTheBitsOfANan) {
  Metadata metadata;
  metadata.set("k", std::numeric_limits<float>::quiet_NaN());
  const std::vector<std::byte> bytes = write_memory(metadata, {});
  EXPECT_TRUE(std::isnan(*Reader::from_memory(bytes, "f.gguf").metadata().get_f32("k")));
}

TEST(Writer, EveryElementTypeComesBackWithItsBytes) {
  for (const ElementTypeInfo& type : all_element_types()) {
    std::vector<std::byte> data(std::size_t{3} * type.block_bytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
    const std::vector<std::byte> bytes =
        write_memory(Metadata(), {tensor_in_memory("t", type.type, {type.block_elements, 3}, data)});
    const Reader reader = Reader::from_memory(bytes, "f.gguf");
    EXPECT_EQ(reader.tensors()[0].type, type.type);
    EXPECT_TRUE(std::ranges::equal(reader.data(reader.tensors()[0]), data)) << type.name;
  }
}

TEST(Writer, FileAndMemoryHoldTheSameBytes) {
  const TempDir folder;
  write_file(folder / "m.gguf", Metadata(), {small_tensor("a"), small_tensor("b")});
  EXPECT_EQ(quipu::test::read_bytes(folder / "m.gguf"),
            write_memory(Metadata(), {small_tensor("a"), small_tensor("b")}));
}

TEST(Writer, TakesDataInPieces) {
  TensorToWrite tensor = small_tensor("t");
  tensor.produce = [](const auto& put) {
    put(as_bytes_of(kValues).first(5));
    put({});
    put(as_bytes_of(kValues).subspan(5));
  };
  const std::vector<std::byte> bytes = write_memory(Metadata(), {tensor});
  const Reader reader = Reader::from_memory(bytes, "f.gguf");
  EXPECT_TRUE(std::ranges::equal(reader.data(reader.tensors()[0]), as_bytes_of(kValues)));
}

TEST(Writer, TheMetadataSetsTheAlignment) {
  Metadata metadata;
  metadata.set("general.alignment", std::uint32_t{256});
  const std::vector<std::byte> bytes = write_memory(metadata, {small_tensor("a"), small_tensor("b")});
  const Reader reader = Reader::from_memory(bytes, "f.gguf");
  EXPECT_EQ(reader.alignment(), 256u);
  EXPECT_EQ(reader.tensors()[1].offset % 256, 0u);
  EXPECT_EQ(bytes.size() % 256, 0u);
}

TEST(Writer, DropsTheKeysOfASplitThatTheMetadataCameFrom) {
  Metadata metadata;
  metadata.set("split.count", std::uint16_t{3});
  metadata.set("split.no", std::uint16_t{0});
  metadata.set("general.name", std::string("x"));
  const std::vector<std::byte> bytes = write_memory(metadata, {});
  EXPECT_EQ(Reader::from_memory(bytes, "f.gguf").metadata().entries().size(), 1u);
}

TEST(Writer, RefusesRepeatedNames) {
  EXPECT_EQ(refusal({small_tensor("t"), small_tensor("t")}), "m: tensor 't': occurs twice");
}

TEST(Writer, RefusesNamesOfTheWrongLength) {
  EXPECT_EQ(refusal({small_tensor("")}), "m: tensor '': a name of 0 bytes, where 1 to 64 are possible");
  EXPECT_EQ(refusal({small_tensor(std::string(64, 'n'))}), "not refused");
  EXPECT_EQ(refusal({small_tensor(std::string(65, 'n'))}),
            "m: tensor '" + std::string(65, 'n') + "': a name of 65 bytes, where 1 to 64 are possible");
}

TEST(Writer, RefusesAnEmptyKey) {
  Metadata metadata("m");
  metadata.set("", true);
  EXPECT_EQ(refusal({}, metadata), "m: key '': a name of 0 bytes, where 1 to 65535 are possible");
}

TEST(Writer, RefusesABadAlignment) {
  Metadata metadata("m");
  metadata.set("general.alignment", std::uint32_t{48});
  EXPECT_EQ(refusal({}, metadata), "m: key 'general.alignment': 48 is not a power of two of at least 8");
}

TEST(Writer, RefusesShapesThatTheFormatCannotHold) {
  TensorToWrite tensor = small_tensor("t");
  tensor.dims = {3, 0};
  EXPECT_EQ(refusal({tensor}), "m: tensor 't': dimension of size 0 in [3, 0]");
  tensor.dims = {1, 1, 1, 1, 1};
  EXPECT_EQ(refusal({tensor}), "m: tensor 't': 5 dimensions, where 1 to 4 are possible");
}

TEST(Writer, RefusesBytesThatDoNotMatchTheShape) {
  EXPECT_EQ(refusal_of([] { (void)tensor_in_memory("t", ElementType::f32, {7}, as_bytes_of(kValues)); }),
            "in memory: tensor 't': 24 bytes of data, where 28 are needed");
}

TEST(Writer, RefusesTooLittleOrTooMuchData) {
  TensorToWrite tensor = small_tensor("t");
  tensor.produce = [](const auto& put) { put(as_bytes_of(kValues).first(23)); };
  EXPECT_EQ(refusal({tensor}), "m: tensor 't': 23 bytes of data, where 24 are needed");
  tensor.produce = [](const auto& put) {
    put(as_bytes_of(kValues));
    put(as_bytes_of(kValues).first(1));
  };
  EXPECT_EQ(refusal({tensor}), "m: tensor 't': more data than its 24 bytes");
}

TEST(Writer, LeavesNothingBehindWhenItFails) {
  const TempDir folder;
  TensorToWrite tensor = small_tensor("t");
  tensor.produce = [](const auto&) {};
  EXPECT_THROW(write_file(folder / "m.gguf", Metadata(), {tensor}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace quipu::gguf::test
