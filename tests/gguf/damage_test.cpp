// A valid file cut at every byte, and changed at every byte: it gives an Error or opens and can be read to
// the end.
#include <gtest/gtest.h>

#include "gguf/raw_file.h"
#include "gguf/writer.h"
#include "support/files.h"

namespace quipu::gguf::test {
namespace {

/// Every kind of value, and tensors whose data fills its padding.
std::vector<std::byte> valid_file() {
  Metadata metadata("valid");
  metadata.set("general.architecture", std::string("llama"));
  metadata.set("general.alignment", std::uint32_t{32});
  metadata.set("a.u8", std::uint8_t{1});
  metadata.set("a.i64", std::int64_t{-1});
  metadata.set("a.f64", 0.5);
  metadata.set("a.bool", true);
  metadata.set("a.bools", Array(std::vector<Bool>{{true}, {false}}));
  metadata.set("a.strings", Array(std::vector<std::string>{"one", "", "three"}));
  metadata.set("a.f32s", Array(std::vector<float>{1, 2, 3}));
  static const std::vector<float> data(16, 1.0f);
  static const std::vector<std::byte> blocks(2 * 34 * 16);
  return write_memory(metadata,
                      {tensor_in_memory("first", ElementType::f32, {4, 4}, as_bytes_of(data)),
                       tensor_in_memory("blocks", ElementType::q8_0, {64, 16}, blocks),
                       tensor_in_memory("last", ElementType::f32, {8}, as_bytes_of(data).first(32))});
}

/// Reads everything that a reader offers; returns the number of bytes of tensors.
std::uint64_t read_everything(const Reader& reader) {
  std::uint64_t sum = 0;
  for (const auto& [key, value] : reader.metadata().entries()) sum += to_display(value).size() > 0 ? 0 : 1;
  std::vector<std::byte> copy;
  for (const TensorInfo& tensor : reader.tensors()) {
    copy.resize(tensor.bytes);
    reader.read_data(tensor, 0, copy);
    sum += copy.size();
  }
  return sum;
}

TEST(DamagedFile, CutAtAnyByteIsFoundWhenOpened) {
  const std::vector<std::byte> whole = valid_file();
  ASSERT_FALSE(error_of(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own, so that the address sanitizer sees a read past the cut.
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_TRUE(error_of(cut)) << "cut to " << size << " bytes";
  }
}

TEST(DamagedFile, CutIsFoundInEitherReadMode) {
  const quipu::test::TempDir folder;
  const std::vector<std::byte> whole = valid_file();
  for (const std::size_t missing : {std::size_t{1}, std::size_t{16}, whole.size() - 700, whole.size() - 10}) {
    quipu::test::write_bytes(folder / "cut.gguf", std::span(whole).first(whole.size() - missing));
    for (const ReadMode mode : {ReadMode::mapped, ReadMode::read}) {
      EXPECT_THROW((void)Reader::open(folder / "cut.gguf", mode), Error) << missing;
    }
  }
}

TEST(DamagedFile, AnyByteChangedGivesAnErrorOrAFileThatCanBeRead) {
  const std::vector<std::byte> whole = valid_file();
  std::size_t n_opened = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned flip : {0x01u, 0x10u, 0x80u, 0xffu}) {
      std::vector<std::byte> changed = whole;
      changed[at] ^= static_cast<std::byte>(flip);
      try {
        const Reader reader = Reader::from_memory(changed, "changed");
        read_everything(reader);
        ++n_opened;
      } catch (const Error& error) {
        ASSERT_EQ(error.message().find('\n'), std::string::npos) << error.message();
        ASSERT_NE(error.code(), ErrorCode::internal) << error.message();
      }
    }
  }
  EXPECT_GT(n_opened, 64u);  // at least the changes to the data itself
}

}  // namespace
}  // namespace quipu::gguf::test
