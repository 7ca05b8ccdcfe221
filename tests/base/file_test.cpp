// Reading, mapping and atomic writing of files, and what their errors say.
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "support/files.h"

namespace quipu {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string text_of(const std::filesystem::path& path) {
  return text_of(test::read_bytes(path));
}

std::size_t files_in(const test::TempDir& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()),
                                                std::filesystem::directory_iterator()));
}

void expect_error(ErrorCode code, std::string_view part, const std::function<void()>& action) {
  try {
    action();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.message(), HasSubstr(std::string(part)));
  }
}

TEST(File, IsReadAtAnOffset) {
  const test::TempDir folder;
  test::write_text(folder / "letters", "abcdefgh");
  const File file(folder / "letters");
  EXPECT_EQ(file.size(), 8u);
  std::vector<std::byte> out(3);
  file.read_at(2, out);
  EXPECT_EQ(text_of(out), "cde");
}

TEST(File, ThatEndsTooEarlyIsABadFileNamedWithThePlace) {
  const test::TempDir folder;
  test::write_text(folder / "short", "abcd");
  const File file(folder / "short");
  std::vector<std::byte> out(3);
  expect_error(ErrorCode::bad_file, "short: the file ends at byte 4", [&] { file.read_at(2, out); });
}

TEST(File, ThatIsMissingIsNamedWithTheSystemsReason) {
  const test::TempDir folder;
  expect_error(ErrorCode::io, "missing: cannot open: No such file", [&] { File(folder / "missing"); });
}

TEST(File, IsNeitherAFolderNorAPipe) {
  const test::TempDir folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorCode::io, "not a regular file", [&] { File(folder / "pipe"); });
  expect_error(ErrorCode::io, "not a regular file", [&] { File(folder.path()); });
}

TEST(File, StaysOpenWhenMoved) {
  const test::TempDir folder;
  test::write_text(folder / "a", "aaaa");
  test::write_text(folder / "b", "bb");
  File file(folder / "a");
  file = File(folder / "b");
  const File moved(std::move(file));
  std::vector<std::byte> out(moved.size());
  moved.read_at(0, out);
  EXPECT_EQ(text_of(out), "bb");
}

TEST(MappedFile, HoldsTheFilesBytes) {
  const test::TempDir folder;
  test::write_text(folder / "letters", "abcdefgh");
  const MappedFile mapped{File(folder / "letters")};  // the mapping outlives the open file
  EXPECT_EQ(text_of(mapped.bytes()), "abcdefgh");
}

TEST(MappedFile, OfAnEmptyFileIsEmpty) {
  const test::TempDir folder;
  test::write_text(folder / "empty", "");
  EXPECT_TRUE(MappedFile(File(folder / "empty")).bytes().empty());
}

TEST(MappedFile, CanBeReadAgainAfterARelease) {
  const test::TempDir folder;
  test::write_text(folder / "pages", std::string(100'000, 'x'));
  const MappedFile mapped{File(folder / "pages")};
  mapped.release(0, mapped.bytes().size());
  mapped.release(50'000, std::size_t{0} - 1);
  mapped.release(1'000'000, 1);
  EXPECT_EQ(text_of(mapped.bytes()), std::string(100'000, 'x'));
}

TEST(AtomicFileWriter, ReplacesTheTargetOnCommit) {
  const test::TempDir folder;
  test::write_text(folder / "target", "old");
  AtomicFileWriter writer(folder / "target");
  writer.write(as_bytes("new "));
  writer.write(as_bytes("text"));
  EXPECT_EQ(writer.position(), 8u);
  EXPECT_EQ(text_of(folder / "target"), "old");
  writer.commit();
  EXPECT_EQ(text_of(folder / "target"), "new text");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(AtomicFileWriter, LeavesNoTraceWithoutACommit) {
  const test::TempDir folder;
  test::write_text(folder / "target", "old");
  {
    AtomicFileWriter writer(folder / "target");
    writer.write(as_bytes("half of"));
    EXPECT_EQ(files_in(folder), 2u);
  }
  EXPECT_EQ(text_of(folder / "target"), "old");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(AtomicFileWriter, MakesAnOrdinaryFileByTheProcesssMask) {
  const test::TempDir folder;
  AtomicFileWriter writer(folder / "target");
  writer.commit();
  const mode_t mask = ::umask(0);
  ::umask(mask);
  struct stat info {};
  ASSERT_EQ(::stat((folder / "target").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0666u & ~mask);
}

TEST(AtomicFileWriter, TakesTheLongestNameThatTheFileSystemAllows) {
  const test::TempDir folder;
  const std::string name(255, 'n');
  AtomicFileWriter writer(folder / name);
  writer.write(as_bytes("text"));
  writer.commit();
  EXPECT_EQ(text_of(folder / name), "text");
}

TEST(AtomicFileWriter, NamesTheTargetInAFolderThatIsMissing) {
  const test::TempDir folder;
  expect_error(ErrorCode::io, "missing/target: cannot create",
               [&] { AtomicFileWriter(folder / "missing/target"); });
}

TEST(AtomicFileWriter, LetsTheLastOfConcurrentWritersWinWhole) {
  const test::TempDir folder;
  std::vector<std::thread> threads;
  for (char letter = 'a'; letter < 'd'; ++letter) {
    threads.emplace_back([&folder, letter] {
      for (int round = 0; round < 10; ++round) {
        AtomicFileWriter writer(folder / "target");
        for (int piece = 0; piece < 10; ++piece) writer.write(as_bytes(std::string(1000, letter)));
        writer.commit();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = text_of(folder / "target");
  EXPECT_EQ(text, std::string(10'000, text.at(0)));
  EXPECT_EQ(files_in(folder), 1u);
}

}  // namespace
}  // namespace quipu
