// quipu run on the built-in model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "cli/program.h"
#include "support/files.h"
#include "support/golden.h"

namespace quipu::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Run, ContinuesATextWithoutAModelFile) {
  const Result result = run({"run", "-n", "20", "--seed", "1", "Once upon a time"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_GT(result.out.size(), 10u);
  EXPECT_EQ(result.err, "");
}

TEST(Run, DoesNotEchoThePromptUnlessAsked) {
  const std::string prompt = "Once upon a time";
  const Result silent = run({"run", "-n", "8", "--temp", "0", prompt});
  const Result echoed = run({"run", "-n", "8", "--temp", "0", "--echo", prompt});
  EXPECT_EQ(echoed.out, prompt + silent.out);
}

TEST(Run, EndsItsOutputWithALineBreak) {
  const Result result = run({"run", "-n", "3", "--seed", "1", "Once upon a time"});
  ASSERT_FALSE(result.out.empty());
  EXPECT_EQ(result.out.back(), '\n');
}

TEST(Run, KnowsTheCapitalOfPeru) {
  const Result result =
      run({"run", "--temp", "0",
           "<|im_start|>user\nWhat is the capital of Peru?<|im_end|>\n<|im_start|>assistant\n"});
  EXPECT_EQ(result.out, "The capital of Peru is Lima.\n");
}

TEST(Run, ReadsThePromptFromStandardInput) {
  const Result argument = run({"run", "-n", "10", "--temp", "0", "Once upon a time"});
  EXPECT_EQ(run({"run", "-n", "10", "--temp", "0", "-"}, "Once upon a time").out, argument.out);
  EXPECT_EQ(run({"run", "-n", "10", "--temp", "0"}, "Once upon a time").out, argument.out);
}

TEST(Run, KeepsNulBytesOfStandardInput) {
  const std::string prompt("before\0after", 12);
  const Result whole = run({"run", "-n", "1", "--json", "--temp", "0"}, prompt);
  const Result cut = run({"run", "-n", "1", "--json", "--temp", "0"}, "before");
  EXPECT_GT(whole.json()["prompt_tokens"].size(), cut.json()["prompt_tokens"].size());
  EXPECT_EQ(run({"run", "-n", "1", "--echo", "--temp", "0"}, prompt).out.substr(0, 12), prompt);
}

TEST(Run, EmptyStandardInputEndsAtOnceWithADocumentedCode) {
  const auto start = std::chrono::steady_clock::now();
  const Result result = run({"run", "-n", "10"}, "");
  EXPECT_THAT(result.exit_code, testing::AnyOf(0, 1));
  EXPECT_LT(result.out.size(), 1000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Run, TwoLinesWithAndWithoutAFinalLineBreakBothWork) {
  for (const std::string& in : {std::string("one\ntwo"), std::string("one\ntwo\n")}) {
    const Result result = run({"run", "-n", "5", "--echo", "--seed", "1"}, in);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, StartsWith(in));
  }
}

TEST(Run, TheSameSeedGivesTheSameText) {
  const std::vector<std::string> arguments = {"run", "-n",     "40",  "--seed",
                                              "5",   "--temp", "1.5", "Once upon a time"};
  EXPECT_EQ(run(arguments).out, run(arguments).out);
}

TEST(Run, ThreadsDoNotChangeTheText) {
  std::set<std::string> texts;
  for (const char* threads : {"1", "2", "3"}) {
    texts.insert(
        run({"run", "-n", "40", "--seed", "5", "--temp", "1.5", "-t", threads, "Once upon a time"}).out);
  }
  EXPECT_EQ(texts.size(), 1u);
}

TEST(Run, SeedsMatter) {
  std::set<std::string> texts;
  for (const char* seed : {"1", "2", "3", "4"}) {
    texts.insert(run({"run", "-n", "40", "--seed", seed, "--temp", "1.5", "Once upon a time"}).out);
  }
  EXPECT_GT(texts.size(), 1u);
}

TEST(Run, TheRandomSeedOfARunRepeatsIt) {
  const Result first = run({"run", "-n", "40", "--temp", "1.5", "--json", "Once upon a time"});
  const std::string seed = first.json()["settings"]["seed"].dump();
  const Result again =
      run({"run", "-n", "40", "--temp", "1.5", "--json", "--seed", seed, "Once upon a time"});
  EXPECT_EQ(first.json()["tokens"], again.json()["tokens"]);
}

TEST(Run, JsonHoldsTokensTextAndTimings) {
  const nlohmann::json json = run({"run", "-n", "12", "--seed", "3", "--json", "Once upon a time"}).json();
  EXPECT_EQ(json["tokens"].size(), json["pieces"].size());
  EXPECT_LE(json["tokens"].size(), 12u);
  EXPECT_EQ(json["timings"]["generation_tokens"], json["tokens"].size());
  EXPECT_EQ(json["timings"]["prompt_tokens"], json["prompt_tokens"].size());
  for (const char* key : {"load_ms", "prompt_ms", "prompt_tps", "generation_ms", "generation_tps"}) {
    EXPECT_TRUE(json["timings"][key].is_number()) << key;
  }
  EXPECT_EQ(json["settings"]["seed"], 3);
  EXPECT_EQ(json["model"], "<built-in>");
}

TEST(Run, JsonTextIsWhatWouldHaveBeenPrinted) {
  const std::vector<std::string> arguments = {"run", "-n", "30", "--seed", "3", "Once upon a time"};
  std::vector<std::string> with_json = arguments;
  with_json.insert(with_json.begin() + 1, "--json");
  EXPECT_EQ(run(with_json).json()["text"].get<std::string>() + "\n", run(arguments).out);
}

TEST(Run, OptionsOverrideTheFilesSettings) {
  const nlohmann::json json = run({"run", "-n", "1", "--json", "--temp", "0.25", "--top-k", "7", "--top-p",
                                   "0.5", "--min-p", "0.125", "Once"})
                                  .json();
  EXPECT_EQ(json["settings"]["temp"], 0.25);
  EXPECT_EQ(json["settings"]["top_k"], 7);
  EXPECT_EQ(json["settings"]["top_p"], 0.5);
  EXPECT_EQ(json["settings"]["min_p"], 0.125);
}

TEST(Run, WithoutOptionsTheFilesSettingsHold) {
  const nlohmann::json metadata = run({"inspect", "--json"}).json()["metadata"];
  const nlohmann::json settings = run({"run", "-n", "1", "--json", "Once"}).json()["settings"];
  const nlohmann::json usual = {{"temp", 0.8}, {"top_k", 40}, {"top_p", 0.95}, {"min_p", 0.05}};
  for (const auto& [name, value] : usual.items()) {
    EXPECT_EQ(settings[name], metadata.value("general.sampling." + name, value)) << name;
  }
}

TEST(Run, GeneratesNoMoreThanAsked) {
  const nlohmann::json json = run({"run", "-n", "4", "--ignore-end", "--json", "Once upon a time"}).json();
  EXPECT_EQ(json["tokens"].size(), 4u);
  EXPECT_EQ(json["stop"], "length");
}

TEST(Run, ZeroTokensOnlyReadThePrompt) {
  const nlohmann::json json = run({"run", "-n", "0", "--json", "Once upon a time"}).json();
  EXPECT_EQ(json["tokens"].size(), 0u);
  EXPECT_EQ(json["text"], "");
}

TEST(Run, StopsWhenTheContextIsFull) {
  const nlohmann::json json = run({"run", "-c", "256", "--ignore-end", "--json", "Once upon a time"}).json();
  EXPECT_EQ(json["stop"], "context");
  EXPECT_EQ(json["tokens"].size() + json["prompt_tokens"].size(), json["n_ctx"].get<std::size_t>() + 1);
}

TEST(Run, APromptLongerThanTheContextIsAnErrorWithBothNumbers) {
  std::string prompt;
  for (int i = 0; i < 3000; ++i) prompt += "word ";
  const Result result = run({"run", "-c", "256", "-"}, prompt);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the context holds 256"));
  EXPECT_EQ(result.out, "");
}

TEST(Run, APromptMayBeNamedLikeACommand) {
  EXPECT_EQ(run({"run", "-n", "2", "--seed", "1", "inspect"}).exit_code, 0);
}

TEST(Run, APromptMayBeginWithADashBehindTwoDashes) {
  EXPECT_EQ(run({"run", "-n", "2", "--seed", "1", "--", "-5 is a number"}).exit_code, 0);
}

TEST(Run, AModelWithoutAVocabularyIsRefusedInOneLine) {
  const TempDir folder;
  write_golden_model(folder / "m.gguf", load_golden("llama"));
  const Result result = run({"run", "-m", (folder / "m.gguf").string(), "text"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, testing::MatchesRegex("quipu: [^\n]+\n"));
}

TEST(RunSignals, TwoInterruptsEndItAtOnce) {
  Program program({"run", "-c", "16384", "--ignore-end", "Once upon a time"});
  program.wait_for_output();
  const auto start = std::chrono::steady_clock::now();
  program.signal(SIGINT);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, 130);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(RunSignals, CtrlCStopsCleanlyAndPrintsTheCounters) {
  Program program({"run", "-n", "1000000", "-c", "16384", "--ignore-end", "Once upon a time"});
  program.wait_for_output();
  program.signal(SIGINT);
  const Result result = program.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, HasSubstr("tokens/s"));
  EXPECT_EQ(result.out.back(), '\n');
}

TEST(RunSignals, CtrlCStillGivesWholeJson) {
  Program program({"run", "-n", "1000000", "-c", "16384", "--ignore-end", "--json", "Once upon a time"});
  std::this_thread::sleep_for(std::chrono::seconds(2));
  program.signal(SIGINT);
  const Result result = program.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.json()["stop"], "interrupted");
}

TEST(RunSignals, CtrlCEndsTheWaitForStandardInput) {
  Program::Options options;
  options.keep_input_open = true;
  Program program({"run", "-"}, options);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, 130);
}

TEST(RunSignals, ARequestToTerminateStopsCleanlyToo) {
  Program program({"run", "-n", "1000000", "-c", "16384", "--ignore-end", "Once upon a time"});
  program.wait_for_output();
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().exit_code, 143);
}

TEST(RunSignals, AClosedPipeEndsTheProgramQuietly) {
  Program program({"run", "-n", "1000000", "-c", "16384", "--ignore-end", "Once upon a time"});
  program.wait_for_output();
  program.stop_reading();
  const Result result = program.wait();
  EXPECT_EQ(result.exit_code, 141);
  EXPECT_EQ(result.err, "");
}

TEST(Run, TakesEverySamplingOption) {
  const Result result = run({"run",
                             "-n",
                             "4",
                             "--json",
                             "--seed",
                             "3",
                             "--repeat-last-n",
                             "-1",
                             "--repeat-penalty",
                             "1.25",
                             "--frequency-penalty",
                             "0.5",
                             "--presence-penalty",
                             "0.25",
                             "--typical",
                             "0.75",
                             "--top-nsigma",
                             "2",
                             "--xtc-probability",
                             "0.5",
                             "--xtc-threshold",
                             "0.25",
                             "--dynatemp-range",
                             "0.5",
                             "--dynatemp-exp",
                             "2",
                             "--dry-multiplier",
                             "0.5",
                             "--dry-base",
                             "2",
                             "--dry-allowed-length",
                             "3",
                             "--dry-penalty-last-n",
                             "99",
                             "--dry-sequence-breaker",
                             "x",
                             "--dry-sequence-breaker",
                             "y",
                             "--adaptive-target",
                             "0.5",
                             "--adaptive-decay",
                             "0.5",
                             "--logit-bias",
                             "5-inf",
                             "--samplers",
                             "penalties;top_k;temperature",
                             "Once"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json settings = result.json()["settings"];
  EXPECT_EQ(settings["penalty_last_n"], -1);
  EXPECT_EQ(settings["penalty_repeat"], 1.25);
  EXPECT_EQ(settings["dry_breakers"], nlohmann::json({"x", "y"}));
  EXPECT_EQ(settings["samplers"], nlohmann::json({"penalties", "top_k", "temp"}));
  EXPECT_EQ(settings["logit_bias"][0]["token"], 5);
}

TEST(Run, MirostatGeneratesToo) {
  for (const char* algorithm : {"1", "2"}) {
    const Result result = run({"run", "-n", "8", "--seed", "1", "--mirostat", algorithm, "Once upon a time"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_GT(result.out.size(), 4u);
  }
}

TEST(Run, RefusesSamplingOptionsThatMakeNoSense) {
  for (const auto& [option, value] :
       {std::pair("--samplers", "top_k;bogus"), std::pair("--logit-bias", "five+1"),
        std::pair("--logit-bias", "5"), std::pair("--mirostat", "3")}) {
    const Result result = run({"run", "-n", "1", option, value, "Once"});
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_THAT(result.err, HasSubstr(option));
  }
}

TEST(Run, ABannedTokenIsNeverChosen) {
  const nlohmann::json free = run({"run", "-n", "1", "--temp", "0", "--json", "Once upon a"}).json();
  const int first = free["tokens"][0];
  const std::string ban = std::to_string(first) + "-inf";
  EXPECT_NE(run({"run", "-n", "1", "--temp", "0", "--json", "--logit-bias", ban, "Once upon a"})
                .json()["tokens"][0],
            first);
}

}  // namespace
}  // namespace quipu::test
