#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.h"
#include "support/files.h"
#include "support/golden.h"

namespace quipu::test {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = QUIPU_SOURCE_DIR "/models/quipu-mini.gguf";

TEST(Inspect, ShowsMetadataAndTensorsAsTables) {
  const Result result = run({"inspect", kModel});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* word :
       {"general.architecture", "llama", "tokenizer.ggml.tokens", "token_embd.weight", "F16"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
}

TEST(Inspect, JsonHoldsEveryKeyAndTensor) {
  const nlohmann::json json = run({"inspect", "--json", kModel}).json();
  EXPECT_EQ(json["file"], kModel);
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["metadata"]["general.architecture"], "llama");
  EXPECT_EQ(json["metadata_types"]["general.architecture"], "string");
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"].size(), 1024u);
  EXPECT_EQ(json["metadata_types"]["tokenizer.ggml.tokens"], "string[]");
  std::uint64_t n_params = 0;
  for (const auto& tensor : json["tensors"]) n_params += tensor["n_elements"].get<std::uint64_t>();
  EXPECT_EQ(json["n_params"], n_params);
}

TEST(Inspect, JsonShowsFloatsInTheirShortestForm) {
  const Result result = run({"inspect", "--json", kModel});
  EXPECT_THAT(result.out, HasSubstr("\"llama.attention.layer_norm_rms_epsilon\": 1e-05"));
}

TEST(Inspect, WithoutAFileShowsTheBuiltInModelWhichIsTheOneInTheTree) {
  nlohmann::json built_in = run({"inspect", "--json"}).json();
  nlohmann::json file = run({"inspect", "--json", kModel}).json();
  EXPECT_EQ(built_in["file"], "<built-in>");
  built_in.erase("file");
  file.erase("file");
  EXPECT_EQ(built_in, file);
}

TEST(InspectCheck, SaysThatAModelCanBeLoaded) {
  const Result result = run({"inspect", "--check", kModel});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("can be loaded"));
}

TEST(InspectCheck, ListsAllProblemsAtOnceAndFails) {
  const TempDir folder;
  Golden golden = load_golden("llama");
  std::erase_if(golden.tensors,
                [](const GoldenTensor& tensor) { return tensor.name == "blk.1.ffn_up.weight"; });
  golden.tensors.back().dims = {64, 65};
  golden.tensors.push_back({"strange", ElementType::f32, {8}});
  const std::string misshapen = golden.tensors[golden.tensors.size() - 2].name;
  write_golden_model(folder / "broken.gguf", golden);

  const Result result = run({"inspect", "--check", (folder / "broken.gguf").string()});
  EXPECT_EQ(result.exit_code, 1);
  for (const std::string& part : {std::string("'blk.1.ffn_up.weight' [96, 64] is missing"), misshapen,
                                  std::string("found [65, 64]"), std::string("'strange' is not used")}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  const nlohmann::json json = run({"inspect", "--check", "--json", (folder / "broken.gguf").string()}).json();
  EXPECT_EQ(json["problems"].size(), 2u);
  EXPECT_EQ(json["unused_tensors"], nlohmann::json::array({"strange"}));
}

}  // namespace
}  // namespace quipu::test
