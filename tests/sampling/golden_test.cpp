// Chains of stages against recorded results of the reference library: tests/data/sampling/stages.json holds
// rows of logits (null: minus infinity) and, for each chain, how many candidates stay, the selected one (-1:
// none) and the probabilities of the first 24 that stay, highest first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sampling/chain.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

/// The numbers in a text like "0.95, min_keep=1" or "{3: +5, 7: -inf}", in their order.
std::vector<float> numbers(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::string("(){}=:,").find(c) != std::string::npos; },
      ' ');
  std::istringstream words(text);
  std::vector<float> result;
  for (std::string word; words >> word;) {
    char* end = nullptr;
    const float number = std::strtof(word.c_str(), &end);
    if (*end == 0) result.push_back(number);
  }
  return result;
}

stage::Bias bias_of(const std::vector<float>& pairs) {
  stage::Bias bias;
  for (std::size_t i = 0; i < pairs.size(); i += 2)
    bias.biases.push_back({static_cast<Token>(pairs[i]), pairs[i + 1]});
  return bias;
}

/// "top_p(0.95, min_keep=1)" or "greedy" as a stage.
SamplerStage parse_stage(const std::string& text) {
  const std::string name = text.substr(0, text.find('('));
  const std::vector<float> given = numbers(text.substr(name.size()));
  const auto at = [&](std::size_t i) { return given.at(i); };
  const auto count = [&](std::size_t i) { return static_cast<std::size_t>(given.at(i)); };
  if (name == "greedy") return stage::Greedy{};
  if (name == "temp") return stage::Temperature{at(0)};
  if (name == "temp_ext") return stage::DynamicTemperature{at(0), at(1), at(2)};
  if (name == "top_k") return stage::TopK{static_cast<std::int32_t>(at(0))};
  if (name == "top_p") return stage::TopP{at(0), count(1)};
  if (name == "min_p") return stage::MinP{at(0), count(1)};
  if (name == "typical") return stage::Typical{at(0), count(1)};
  if (name == "top_n_sigma") return stage::TopNSigma{at(0)};
  if (name == "logit_bias") return bias_of(given);
  throw std::runtime_error("unknown stage " + text);
}

/// Stages one after the other, a space between them.
Chain parse_chain(const std::string& text) {
  Chain chain;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t bracket = text.find('(', begin), space = text.find(' ', begin);
    const std::size_t end = std::min(bracket < space ? text.find(')', begin) + 1 : space, text.size());
    chain.add(make_stage(parse_stage(text.substr(begin, end - begin))));
    begin = end + 1;
  }
  return chain;
}

std::vector<float> parse_logits(const nlohmann::json& row) {
  std::vector<float> logits;
  for (const auto& value : row) {
    logits.push_back(value.is_null() ? -std::numeric_limits<float>::infinity() : value.get<float>());
  }
  return logits;
}

/// With a probability of 0 in the list, the reference's entropy is 0 * -infinity, which is NaN, and what typical
/// sampling keeps then is an accident of sorting.
bool is_wrong(const nlohmann::json& result) {
  const std::string chain = result["chain"];
  return result["logits"] == "masked" && chain.find("typical") != std::string::npos &&
         chain.find("typical(1,") == std::string::npos;
}

class Golden : public testing::Test {
 protected:
  static nlohmann::json load() {
    std::ifstream file(QUIPU_SOURCE_DIR "/tests/data/sampling/stages.json");
    return nlohmann::json::parse(file);
  }
};

TEST_F(Golden, EveryChainKeepsTheRecordedCandidatesWithTheirProbabilities) {
  const nlohmann::json data = load();
  ASSERT_EQ(data["results"].size(), 282u);
  for (const auto& result : data["results"]) {
    if (is_wrong(result)) continue;
    SCOPED_TRACE(result["chain"].get<std::string>() + " on " + result["logits"].get<std::string>());
    Candidates candidates;
    candidates.assign(parse_logits(data["logits"][result["logits"].get<std::string>()]));
    parse_chain(result["chain"]).apply(candidates);
    EXPECT_EQ(candidates.size(), result["kept"].get<std::size_t>());
    EXPECT_EQ(candidates.selected(), result["selected"].get<Token>());

    candidates.normalize();
    std::vector<float> probs;
    for (const Candidate& candidate : candidates.items()) probs.push_back(candidate.prob);
    std::sort(probs.rbegin(), probs.rend());
    ASSERT_GE(probs.size(), result["top"].size());
    for (std::size_t i = 0; i < result["top"].size(); ++i) {
      const double expected = result["top"][i][1];
      EXPECT_NEAR(static_cast<double>(probs[i]), expected, 2e-6 * expected + 1e-12) << "place " << i;
    }
  }
}

}  // namespace
}  // namespace quipu::sampling
