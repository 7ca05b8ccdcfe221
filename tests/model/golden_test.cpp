// The tiny models of every architecture against the reference's logits.
#include <gtest/gtest.h>

#include "model/forward.h"
#include "model/model.h"
#include "support/golden.h"

namespace quipu {
namespace {

/// The reference takes tanh-GELU from a half-precision table; everything else agrees to rounding.
double bound_of(const test::Golden& golden) {
  return golden.architecture == "gemma3" ? 2e-7 : 1e-9;
}

class GoldenModel : public testing::TestWithParam<std::string> {
 protected:
  test::Golden golden_ = test::load_golden(GetParam());
  std::shared_ptr<const LoadedModel> model_ = LoadedModel::load(test::golden_model(golden_), golden_.name);
};

TEST_P(GoldenModel, GivesTheReferencesLogits) {
  test::Forward forward(*model_, golden_.tokens.size());
  const std::vector<float> logits = forward.run(golden_.tokens, 2);
  EXPECT_LT(test::nmse(logits, golden_.expected), bound_of(golden_));
}

TEST_P(GoldenModel, GivesTheSameBitsTokenByToken) {
  test::Forward whole(*model_, golden_.tokens.size());
  test::Forward stepwise(*model_, golden_.tokens.size());
  std::vector<float> logits;
  for (const std::int32_t& token : golden_.tokens) {
    const std::vector<float> row = stepwise.run({&token, 1}, 3);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  EXPECT_EQ(logits, whole.run(golden_.tokens, 1));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel, testing::ValuesIn(test::golden_names()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace quipu
