// The tiny models of every supported architecture against the reference's outputs: those of the project, and
// all others where the shared reference data is present.
#include <gtest/gtest.h>

#include "model/arch/architecture.h"
#include "model/forward.h"
#include "model/model.h"
#include "support/golden.h"

namespace quipu {
namespace {

/// The reference takes GELU from a half-precision table; everything else agrees to rounding. T5's goldens
/// have no gate, and with it no GELU.
double bound_of(const Architecture& architecture) {
  const FeedForwardDescription& feed_forward = architecture.feed_forward;
  const auto is_gelu = [](Activation activation) {
    return activation == Activation::gelu_tanh || activation == Activation::gelu_quick;
  };
  if (architecture.t5_names) return 1e-9;
  return is_gelu(feed_forward.activation) || is_gelu(feed_forward.ungated_activation) ? 2e-7 : 1e-9;
}

class GoldenModel : public testing::TestWithParam<std::string> {
 protected:
  std::vector<float> run_whole(std::size_t n_threads) {
    test::Forward forward(*model_, golden_.tokens.size());
    if (!model_->cross_cache_specs().empty()) forward.encode(golden_.tokens, 2);
    return forward.run(golden_.tokens, static_cast<unsigned>(n_threads));
  }
  test::Golden golden_ = test::load_golden(GetParam());
  std::shared_ptr<const LoadedModel> model_ = LoadedModel::load(test::golden_model(golden_), golden_.name);
};

TEST_P(GoldenModel, GivesTheReferencesOutputs) {
  EXPECT_EQ(model_->has_logits(), !golden_.outputs_embeddings);
  double bound = bound_of(*model_->hparams().architecture);
  // Where later layers magnify the table's roundings. With the table's rule in GELU's place the first two
  // agree to their architectures' bound, and Gemma 3n, of 22 layers, to 2e-6.
  if (golden_.name == "spark2_5-experts-v-deep") bound = 3e-7;
  if (golden_.name == "gemma4-full") bound = 1e-5;
  if (golden_.architecture == "gemma3n") bound = 5e-4;
  EXPECT_LT(test::nmse(run_whole(2), golden_.expected), bound);
}

/// Those that keep past tokens, each of which sees only those before it.
class GoldenModelWithMemory : public GoldenModel {};

TEST_P(GoldenModelWithMemory, GivesTheSameBitsTokenByToken) {
  test::Forward stepwise(*model_, golden_.tokens.size());
  if (!model_->cross_cache_specs().empty()) stepwise.encode(golden_.tokens, 1);
  std::vector<float> outputs;
  for (const std::int32_t& token : golden_.tokens) {
    const std::vector<float> row = stepwise.run({&token, 1}, 3);
    outputs.insert(outputs.end(), row.begin(), row.end());
  }
  EXPECT_EQ(outputs, run_whole(1));
}

TEST_P(GoldenModel, GivesTheSameBitsAmongOtherSequences) {
  test::Forward forward(*model_, golden_.tokens.size(), ElementType::f32, 4, 3);
  std::vector<test::SequenceToken> tokens;
  std::vector<std::size_t> rows;  // of the sequence in question
  for (std::size_t i = 0; i < golden_.tokens.size(); ++i) {
    if (i % 2 == 0) tokens.push_back({0, golden_.tokens[(i * 7 + 3) % golden_.tokens.size()]});
    rows.push_back(tokens.size());
    tokens.push_back({1, golden_.tokens[i]});
    if (i % 3 == 0) tokens.push_back({2, golden_.tokens[i]});
  }
  if (!model_->cross_cache_specs().empty()) forward.encode_mixed(tokens, 2);
  const std::vector<float> outputs = forward.run_mixed(tokens, 2);
  const std::size_t width = outputs.size() / tokens.size();
  std::vector<float> own;
  for (const std::size_t row : rows) {
    const auto begin = outputs.begin() + static_cast<std::ptrdiff_t>(row * width);
    own.insert(own.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  EXPECT_EQ(own, run_whole(1));
}

std::string test_name(const testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

/// Refact has no experts: the reference reads them and then computes a dense layer without weights.
bool is_of_no_published_model(std::string_view golden) {
  return golden.starts_with("refact-experts");
}

bool goes_token_by_token(const Architecture& architecture) {
  return architecture.structure != Structure::encoder && !architecture.never_causal;
}

std::vector<std::string> names(bool token_by_token) {
  std::vector<std::string> names = test::all_golden_names();
  std::erase_if(names, [&](const std::string& name) {
    if (is_of_no_published_model(name)) return true;
    const Architecture* architecture = find_architecture(test::golden_architecture(name));
    return architecture == nullptr || (token_by_token && !goes_token_by_token(*architecture));
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel, testing::ValuesIn(names(false)), test_name);
INSTANTIATE_TEST_SUITE_P(All, GoldenModelWithMemory, testing::ValuesIn(names(true)), test_name);

}  // namespace
}  // namespace quipu
