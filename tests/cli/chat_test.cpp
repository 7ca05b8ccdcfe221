// quipu chat on the built-in model, in pipes and on a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "support/files.h"

namespace quipu::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kQuestion = "What is the capital of Peru?\n";
constexpr const char* kAnswer = "The capital of Peru is Lima.\n";

TEST(Chat, AnswersEachLineOfAPipeAndEndsWithIt) {
  const Result result = run({"chat", "--temp", "0"}, kQuestion);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, kAnswer);
  EXPECT_EQ(result.err, "");
}

TEST(Chat, TheLastLineNeedsNoEnd) {
  EXPECT_EQ(run({"chat", "--temp", "0"}, "What is the capital of Peru?").out, kAnswer);
}

TEST(Chat, AnEmptyInputIsAnEmptyConversation) {
  const Result result = run({"chat"}, "");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
}

TEST(Chat, EmptyLinesAreNoMessages) {
  EXPECT_EQ(run({"chat", "--temp", "0"}, std::string("\n  \n") + kQuestion + "\n").out, kAnswer);
}

TEST(Chat, MessagesMayHaveSeveralLines) {
  const std::string one = run({"chat", "--temp", "0"}, "What is\\\nthe capital?\n").out;
  EXPECT_EQ(run({"chat", "--temp", "0"}, "\"\"\"What is\nthe capital?\"\"\"\n").out, one);
}

TEST(Chat, TheSameAfterClearAndAfterUndo) {
  const std::string expected = std::string(kAnswer) + kAnswer;
  EXPECT_EQ(run({"chat", "--temp", "0"}, std::string(kQuestion) + "/clear\n" + kQuestion).out, expected);
  EXPECT_EQ(run({"chat", "--temp", "0"}, std::string(kQuestion) + "/undo\n" + kQuestion).out, expected);
  EXPECT_EQ(run({"chat", "--temp", "0"}, std::string(kQuestion) + "/regen\n").out, expected);
}

TEST(Chat, AConversationGoesOnFromAFile) {
  const TempDir folder;
  const std::string file = (folder / "talk.json").string();
  const std::string whole = run({"chat", "--temp", "0"}, std::string(kQuestion) + "And of Chile?\n").out;
  const Result first = run({"chat", "--temp", "0"}, std::string(kQuestion) + "/save " + file + "\n");
  const Result second = run({"chat", "--temp", "0"}, "/load " + file + "\nAnd of Chile?\n");
  EXPECT_EQ(first.out + second.out, whole);
  EXPECT_EQ(first.err + second.err, "");
}

TEST(Chat, StopTextsEndAnAnswerAndAreNotShown) {
  EXPECT_EQ(run({"chat", "--temp", "0", "-r", "Peru is"}, kQuestion).out, "The capital of \n");
}

TEST(Chat, ShowsAndChangesTheSettings) {
  const Result result = run({"chat", "--top-k", "7"}, "/params --temp 0.25\n/params\n");
  EXPECT_THAT(result.out, HasSubstr("0.25"));
  EXPECT_THAT(result.out, HasSubstr("7"));
}

TEST(Chat, TellsOfWhatFailsAndGoesOn) {
  const Result result =
      run({"chat", "--temp", "0"}, std::string("/load /nonesuch\n/nonesuch\n/save\n") + kQuestion);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, kAnswer);
  EXPECT_THAT(result.err, HasSubstr("/nonesuch: cannot be read"));
  EXPECT_THAT(result.err, HasSubstr("/nonesuch is no command"));
}

TEST(Chat, ABadTemplateIsOneLineWithItsPlace) {
  const TempDir folder;
  write_text(folder / "bad.jinja", "{% for m in messages %}");
  const Result result = run({"chat", "--template-file", (folder / "bad.jinja").string()}, kQuestion);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, testing::MatchesRegex("quipu: [^\n]*line 1, column 24: [^\n]+\n"));
  EXPECT_EQ(run({"chat", "--template", "nonesuch"}, kQuestion).exit_code, 1);
}

TEST(Chat, ATemplateThatRefusesAMessageLeavesTheConversationUsable) {
  const TempDir folder;
  write_text(
      folder / "t.jinja",
      "{% for m in messages %}{% if 'bad' in m.content %}{{ raise_exception('No such words') }}{% endif %}"
      "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n\n");
  const Result result = run({"chat", "--temp", "0", "--template-file", (folder / "t.jinja").string()},
                            std::string("bad words\n") + kQuestion);
  EXPECT_THAT(result.err, HasSubstr("No such words"));
  EXPECT_EQ(result.out, kAnswer);
}

TEST(ChatSignals, CtrlCEndsAPipe) {
  Program::Options options;
  options.keep_input_open = true;
  Program program({"chat"}, options);
  ::usleep(1'000'000);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, 130);
}

/// The program on a terminal of its own.
class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& arguments) {
    process_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (process_ == 0) {
      ::setenv("TERM", "xterm", 1);
      ::unsetenv("NO_COLOR");
      std::vector<char*> argv = {const_cast<char*>("quipu")};
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      ::execv(QUIPU_PROGRAM, argv.data());
      ::_exit(127);
    }
  }
  ~Terminal() {
    ::kill(process_, SIGKILL);
    if (!ended_) ::waitpid(process_, nullptr, 0);
    ::close(terminal_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& text) const {
    ASSERT_EQ(::write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Reads on until the transcript has `text` behind what was waited for before.
  ::testing::AssertionResult shows(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      const std::size_t found = transcript_.find(text, seen_);
      if (found != std::string::npos) {
        seen_ = found + text.size();
        return ::testing::AssertionSuccess();
      }
      pollfd ready{terminal_, POLLIN, 0};
      char buffer[4096];
      if (std::chrono::steady_clock::now() > deadline || ::poll(&ready, 1, 60'000) <= 0) break;
      const ssize_t n = ::read(terminal_, buffer, sizeof buffer);
      if (n <= 0) break;
      transcript_.append(buffer, static_cast<std::size_t>(n));
    }
    return ::testing::AssertionFailure()
           << "no \"" << text << "\" behind byte " << seen_ << " of: " << transcript_;
  }
  int exit_code() {
    static_cast<void>(shows("\1never"));
    int status = 0;
    ::waitpid(process_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int terminal_ = -1;
  pid_t process_ = -1;
  bool ended_ = false;
  std::string transcript_;
  std::size_t seen_ = 0;
};

TEST(ChatOnATerminal, IsAConversation) {
  Terminal terminal({"chat", "--temp", "0"});
  ASSERT_TRUE(terminal.shows("/help"));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("What is the capital of Peru?\n");
  ASSERT_TRUE(terminal.shows("The capital of Peru is Lima."));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("/regen\n");
  ASSERT_TRUE(terminal.shows("The capital of Peru is Lima."));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("/help\n");
  ASSERT_TRUE(terminal.shows("/save FILE"));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("/exit\n");
  EXPECT_EQ(terminal.exit_code(), 0);
}

TEST(ChatOnATerminal, CtrlCStopsTheAnswerAndNotTheProgram) {
  Terminal terminal({"chat", "--temp", "0", "--logit-bias", "2-inf", "-c", "16384"});
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("What is the capital of Peru?\n");
  ASSERT_TRUE(terminal.shows("The"));
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("/clear\nWhat is the capital of Peru?\n");
  ASSERT_TRUE(terminal.shows("The"));
}

TEST(ChatOnATerminal, CtrlCTwiceAtThePromptOrCtrlDEndsIt) {
  Terminal twice({"chat"});
  ASSERT_TRUE(twice.shows("> "));
  twice.type("\x03");
  ::usleep(500'000);  // what is written meanwhile may be lost: Ctrl-C flushes the terminal's buffers
  twice.type("\x03");
  EXPECT_EQ(twice.exit_code(), 130);
  Terminal once({"chat"});
  ASSERT_TRUE(once.shows("> "));
  ::usleep(500'000);  // while the editor takes the terminal over, Ctrl-D is another character
  once.type("\x04");
  EXPECT_EQ(once.exit_code(), 0);
}

}  // namespace
}  // namespace quipu::test
