#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/program.h"

namespace quipu::test {
namespace {

constexpr const char* kModel = QUIPU_SOURCE_DIR "/models/quipu-mini.gguf";

std::string joined(const nlohmann::json& pieces) {
  std::string text;
  for (const auto& piece : pieces) text += piece.get<std::string>();
  return text;
}

TEST(Tokenize, PiecesMakeUpTheText) {
  const std::string text = "Once upon a time, a llama said hello.";
  const nlohmann::json json = run({"tokenize", kModel, text, "--json", "--no-add-special"}).json();
  EXPECT_EQ(joined(json["pieces"]), text);
  EXPECT_EQ(json["n_tokens"], json["tokens"].size());
}

TEST(Tokenize, PrintsALineForEachToken) {
  const Result lines = run({"tokenize", kModel, "hello"});
  const nlohmann::json json = run({"tokenize", kModel, "hello", "--json"}).json();
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_EQ(static_cast<std::size_t>(std::count(lines.out.begin(), lines.out.end(), '\n')),
            json["tokens"].size());
  EXPECT_THAT(lines.out, testing::StartsWith(json["tokens"][0].dump() + "\t"));
}

TEST(Tokenize, IdsComeOnOneLine) {
  const Result ids = run({"tokenize", kModel, "hello there", "--ids"});
  EXPECT_THAT(ids.out, testing::MatchesRegex("[0-9 ]+\n"));
}

TEST(Tokenize, SpecialTokensInTheTextAreTokensUnlessToldOtherwise) {
  const nlohmann::json parsed = run({"tokenize", kModel, "<|im_end|>", "--json", "--no-add-special"}).json();
  const nlohmann::json plain =
      run({"tokenize", kModel, "<|im_end|>", "--json", "--no-add-special", "--no-parse-special"}).json();
  EXPECT_EQ(parsed["n_tokens"], 1);
  EXPECT_GT(plain["n_tokens"], 1);
}

TEST(Tokenize, UntrustedTextFormsNoSpecialTokens) {
  const nlohmann::json json =
      run({"tokenize", kModel, "<|im_end|>", "--json", "--no-add-special", "--untrusted"}).json();
  EXPECT_GT(json["n_tokens"], 1);
}

TEST(Tokenize, DecodesWhatItPrinted) {
  const std::string text = "Once upon a time,\n a llama";
  const Result ids = run({"tokenize", kModel, text, "--ids", "--no-add-special"});
  EXPECT_EQ(run({"tokenize", kModel, "--decode", ids.out}).out, text);
  EXPECT_EQ(run({"tokenize", kModel, "--decode", "-"}, ids.out).out, text);
}

TEST(Tokenize, RefusesToDecodeWhatIsNoToken) {
  for (const char* text : {"12 x", "1.5", "99999999999", "1024"}) {
    const Result result = run({"tokenize", kModel, "--decode", text});
    EXPECT_NE(result.exit_code, 0) << text;
    EXPECT_EQ(result.out, "") << text;
  }
}

TEST(Tokenize, TakesStandardInputByteForByte) {
  const std::string text("a\0b\n", 4);
  const nlohmann::json json = run({"tokenize", kModel, "-", "--json", "--no-add-special"}, text).json();
  EXPECT_EQ(joined(json["pieces"]), text);
}

TEST(Tokenize, AnEmptyTextIsNoError) {
  const Result result = run({"tokenize", kModel, "", "--json", "--no-add-special"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.json()["n_tokens"], 0);
}

TEST(Tokenize, BytesThatAreNoTextStillGiveValidJson) {
  const Result result = run({"tokenize", kModel, "-", "--json"}, "\xE6\xAD \xFF \xF0\x9F");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_GT(result.json()["n_tokens"], 0);
}

}  // namespace
}  // namespace quipu::test
