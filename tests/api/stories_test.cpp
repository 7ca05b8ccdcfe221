// A real trained model, greedily: token for token what the reference writes, however it is computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "quipu/quipu.h"
#include "support/files.h"

namespace quipu {
namespace {

struct Story {
  std::string prompt;
  std::vector<Token> ids;  ///< the prompt's tokens and the 64 that follow
  std::string text;
};

class Stories : public testing::TestWithParam<std::tuple<int, std::uint32_t>> {
 protected:
  void SetUp() override {
    const auto shared = test::shared_dir();
    if (!shared) GTEST_SKIP() << "the shared reference data is not beside the project";
    model_ = Model::load(*shared / "models" / "stories260K.gguf");
    const auto bytes = test::read_bytes(*shared / "golden" / "stories260K.json");
    const auto reference = nlohmann::json::parse(reinterpret_cast<const char*>(bytes.data()),
                                                 reinterpret_cast<const char*>(bytes.data()) + bytes.size());
    for (const auto& run : reference.at("runs")) {
      stories_.push_back({run.at("prompt"), run.at("ids").get<std::vector<Token>>(), run.at("text")});
    }
  }

  std::vector<Token> continue_greedily(Context& context, std::vector<Token> tokens) const {
    EXPECT_EQ(context.decode(tokens), DecodeResult::ok);
    for (int i = 0; i < 64; ++i) {
      const std::span<const float> logits = context.logits(-1);
      tokens.push_back(static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      EXPECT_EQ(context.decode({&tokens.back(), 1}), DecodeResult::ok);
    }
    return tokens;
  }

  std::optional<Model> model_;
  std::vector<Story> stories_;
};

TEST_P(Stories, AreTheReferencesTokenForToken) {
  const auto [n_threads, n_ubatch] = GetParam();
  ASSERT_EQ(stories_.size(), 7u);
  ContextOptions options;
  options.n_threads = options.n_threads_batch = n_threads;
  options.n_ubatch = n_ubatch;
  options.type_k = options.type_v = CacheType::f32;
  for (const Story& story : stories_) {
    Context context(*model_, options);
    const std::vector<Token> prompt = model_->tokenizer().tokenize(story.prompt);
    const std::vector<Token> ids = continue_greedily(context, prompt);
    EXPECT_EQ(ids, story.ids) << story.prompt;
    EXPECT_EQ(model_->tokenizer().detokenize(ids), story.text);
  }
}

INSTANTIATE_TEST_SUITE_P(ThreadsAndMicroBatches, Stories,
                         testing::Combine(testing::Values(1, 2, 3), testing::Values(1u, 8u, 512u)));

}  // namespace
}  // namespace quipu
