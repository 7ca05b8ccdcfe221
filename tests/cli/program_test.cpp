// The program as such: help, usage errors, standard streams that are closed or full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.h"

namespace quipu::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ProgramHelp, GoesToStandardOutputAndNamesCommandsAndExitCodes) {
  const Result result = run({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* word : {"run", "inspect", "tokenize", "bench", "Exit codes", "130", "141"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
}

TEST(ProgramHelp, OfEveryCommandHasExamples) {
  for (const char* command : {"run", "inspect", "tokenize", "bench"}) {
    const Result result = run({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_THAT(result.out, HasSubstr("Examples:")) << command;
  }
}

TEST(ProgramHelp, VersionIsOneLine) {
  const Result result = run({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, testing::MatchesRegex("quipu [0-9.]+\n"));
}

TEST(ProgramUsage, WithoutACommandIsAnError) {
  const Result result = run({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("quipu: "));
}

TEST(ProgramUsage, MistakesExitWithTwoAndSayWhichArgument) {
  const std::vector<std::vector<std::string>> mistakes = {
      {"nonsense"},
      {"run", "--no-such-option", "x"},
      {"run", "-n", "many", "x"},
      {"run", "--seed", "-1", "x"},
      {"run", "--threads", "0", "x"},
      {"run", "--threads", "-1", "x"},
      {"run", "--ctx", "0", "x"},
      {"run", "one", "two"},
      {"bench", "-p", "1,two"},
      {"bench", "-p", "-5"},
      {"bench", "-r", "0"},
      {"bench", "-p", "0", "-n", "0"},
      {"tokenize"},
      {"tokenize", "m.gguf", "text", "--ids", "--json"},
  };
  for (const auto& arguments : mistakes) {
    const Result result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(result.out, "") << testing::PrintToString(arguments);
    EXPECT_THAT(result.err, StartsWith("quipu: ")) << testing::PrintToString(arguments);
  }
}

TEST(ProgramErrors, AMissingFileIsOneLineThatNamesIt) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", "-m", "/no/such.gguf", "x"},
        {"inspect", "/no/such.gguf"},
        {"tokenize", "/no/such.gguf", "x"},
        {"bench", "/no/such.gguf"}}) {
    const Result result = run(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, testing::MatchesRegex("quipu: [^\n]*/no/such.gguf[^\n]*\n"));
  }
}

TEST(ProgramErrors, AFileThatIsNoModelIsOneLineThatNamesIt) {
  const Result result = run({"inspect", QUIPU_SOURCE_DIR "/README.md"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, testing::MatchesRegex("quipu: [^\n]*README.md[^\n]*\n"));
}

TEST(ProgramStreams, AFullDiskIsReported) {
  Program::Options options;
  options.output = Program::Output::full;
  const Result result = Program({"inspect"}, options).wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "quipu: standard output: No space left on device\n");
}

TEST(ProgramStreams, AClosedStandardOutputIsReported) {
  Program::Options options;
  options.output = Program::Output::closed;
  const Result result = Program({"inspect"}, options).wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("quipu: standard output: "));
}

}  // namespace
}  // namespace quipu::test
