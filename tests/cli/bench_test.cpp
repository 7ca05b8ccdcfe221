#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "cli/program.h"
#include "support/files.h"
#include "support/golden.h"

namespace quipu::test {
namespace {

using testing::HasSubstr;

TEST(Bench, JsonIsAnArrayWithOneObjectForEachCombination) {
  const nlohmann::json json =
      run({"bench", "-p", "8,16", "-n", "2", "-d", "0,4", "-t", "1,2", "-r", "1", "--json"}).json();
  ASSERT_EQ(json.size(), 8u);
  EXPECT_EQ(json[0]["n_prompt"], 8);
  EXPECT_EQ(json[1]["n_prompt"], 16);
  EXPECT_EQ(json[2]["depth"], 4);
  EXPECT_EQ(json[7]["threads"], 2);
}

TEST(Bench, FiguresAreMediansWithTheirRange) {
  const nlohmann::json json = run({"bench", "-p", "16", "-n", "4", "-t", "1", "-r", "3", "--json"}).json();
  ASSERT_EQ(json.size(), 1u);
  for (const std::string name : {"prompt_tps", "generation_tps"}) {
    auto all = json[0][name + "_all"].get<std::vector<double>>();
    ASSERT_EQ(all.size(), 3u);
    std::sort(all.begin(), all.end());
    EXPECT_GT(all.front(), 0);
    EXPECT_EQ(json[0][name + "_min"], all[0]);
    EXPECT_EQ(json[0][name], all[1]);
    EXPECT_EQ(json[0][name + "_max"], all[2]);
  }
}

TEST(Bench, ReportsLoadTimeMemoryAndModelSize) {
  const nlohmann::json json = run({"bench", "-p", "8", "-n", "1", "-r", "1", "--json"}).json();
  const nlohmann::json file = run({"inspect", "--json"}).json();
  EXPECT_GT(json[0]["load_ms"], 0.0);
  EXPECT_GT(json[0]["peak_memory_bytes"], 1000000);
  EXPECT_EQ(json[0]["model_bytes"], file["tensor_bytes"]);
  EXPECT_EQ(json[0]["n_params"], file["n_params"]);
}

TEST(Bench, WithoutAPromptOrWithoutGenerationTheOtherFigureIsNull) {
  const nlohmann::json json = run({"bench", "-p", "0,8", "-n", "0,2", "-r", "1", "--json"}).json();
  ASSERT_EQ(json.size(), 3u);
  EXPECT_TRUE(json[0]["prompt_tps"].is_null());
  EXPECT_TRUE(json[0]["generation_tps"].is_number());
  EXPECT_TRUE(json[1]["prompt_tps"].is_number());
  EXPECT_TRUE(json[1]["generation_tps"].is_null());
}

TEST(Bench, TheModelMayStandBehindTheOptions) {
  const Result result =
      run({"bench", "-p", "8", "-n", "1", "-r", "1", QUIPU_SOURCE_DIR "/models/quipu-mini.gguf"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("quipu-mini.gguf"));
  EXPECT_EQ(result.err, "");
}

TEST(Bench, RunsModelsWithoutAVocabulary) {
  const TempDir folder;
  write_golden_model(folder / "m.gguf", load_golden("qwen3"));
  const Result result =
      run({"bench", (folder / "m.gguf").string(), "-p", "600", "-n", "2", "-r", "1", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()[0]["architecture"], "qwen3");
}

TEST(Bench, ComparesWithAPeerInTurns) {
  const TempDir folder;
  const std::string log = (folder / "log").string();
  const std::string peer = "echo {model} {depth} {threads} >> " + log +
                           R"(; echo starting; echo '{"pp{prompt}": 1e-3, "tg{gen}": 2e-3}')";
  const nlohmann::json json =
      run({"bench", "-p", "8", "-n", "2", "-d", "4", "-t", "1", "-r", "3", "--compare", peer, "--json"})
          .json();
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["peer_prompt_tps"], 1e-3);
  EXPECT_EQ(json[0]["peer_generation_tps_all"], std::vector<double>(3, 2e-3));
  EXPECT_EQ(json[0]["prompt_tps_all"].size(), 3u);
  EXPECT_DOUBLE_EQ(json[0]["generation_ratio"].get<double>(),
                   json[0]["generation_tps"].get<double>() / json[0]["peer_generation_tps"].get<double>());
  std::ifstream lines(log);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(lines), {}), " 4 1\n 4 1\n 4 1\n");
}

TEST(Bench, APeersBetterHalfCounts) {
  const TempDir folder;
  const std::string count = (folder / "count").string();
  const std::string peer = "echo x >> " + count + "; echo '{\"pp8\": '$(wc -l < " + count + ")'}'";
  const nlohmann::json json =
      run({"bench", "-p", "8", "-n", "0", "-r", "4", "--compare", peer, "--json"}).json();
  EXPECT_EQ(json[0]["peer_prompt_tps"], 3.5);  // of 1, 2, 3, 4
  EXPECT_TRUE(json[0]["peer_generation_tps"].is_null());
}

TEST(Bench, APeerThatFailsIsAnError) {
  for (const char* peer : {"exit 3", "echo no figures"}) {
    const Result result = run({"bench", "-p", "8", "-n", "0", "-r", "1", "--compare", peer});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr(peer));
  }
}

TEST(Bench, WritesMarkdownAndCsv) {
  const std::vector<std::string> common = {"bench", "-p", "8", "-n", "1", "-t", "1", "-r", "1", "--format"};
  const auto run_as = [&](const char* format) {
    std::vector<std::string> arguments = common;
    arguments.emplace_back(format);
    return run(arguments).out;
  };
  EXPECT_THAT(run_as("markdown"), HasSubstr("| PROMPT | GENERATE | DEPTH | THREADS |"));
  EXPECT_THAT(run_as("markdown"), HasSubstr("|---:|---:|"));
  EXPECT_THAT(run_as("csv"), HasSubstr("n_prompt,n_gen,depth,threads,"));
  EXPECT_THAT(run_as("csv"), HasSubstr(",8,1,0,1,"));
}

TEST(Bench, MeasuresSeveralModels) {
  const std::string file = QUIPU_SOURCE_DIR "/models/quipu-mini.gguf";
  const nlohmann::json json = run({"bench", file, file, "-p", "8", "-n", "0", "-r", "1", "--json"}).json();
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["file"], file);
}

TEST(Bench, CtrlCPrintsWhatIsFinished) {
  Program program({"bench", "-p", "8,4096", "-n", "0", "-r", "1000", "-t", "1", "--json"});
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  program.signal(SIGINT);
  const Result result = program.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_LT(result.json().size(), 2u);
}

}  // namespace
}  // namespace quipu::test
