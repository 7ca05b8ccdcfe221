// Chains of stages against recorded results of the reference library: tests/data/sampling/stages.json holds
// rows of logits (null: minus infinity) and, for each chain, how many candidates stay, the selected one (-1:
// none) and the probabilities of the first 24 that stay, highest first.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sampling/chain.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

std::unique_ptr<Stage> make_stage(const std::string& name, float value, std::size_t min_keep) {
  if (name == "greedy") return std::make_unique<Greedy>();
  if (name == "temp") return std::make_unique<Temperature>(value);
  if (name == "top_k") return std::make_unique<TopK>(static_cast<std::int32_t>(value));
  if (name == "top_p") return std::make_unique<TopP>(value, min_keep);
  if (name == "min_p") return std::make_unique<MinP>(value, min_keep);
  return nullptr;
}

/// "top_p(0.95, min_keep=1)" or "greedy" as a stage.
std::unique_ptr<Stage> parse_stage(const std::string& text) {
  static const std::string kMinKeep = "min_keep=";
  const std::size_t bracket = text.find('('), min_keep = text.find(kMinKeep);
  const float value = bracket == std::string::npos ? 0.0f : std::stof(text.substr(bracket + 1));
  return make_stage(text.substr(0, bracket), value,
                    min_keep == std::string::npos ? 1 : std::stoul(text.substr(min_keep + kMinKeep.size())));
}

/// Stages one after the other, a space between them.
Chain parse_chain(const std::string& text) {
  Chain chain;
  for (std::size_t begin = 0; begin < text.size();) {
    // A space ends a stage unless it is inside brackets, where one follows the comma.
    std::size_t end = text.find(' ', begin);
    while (end != std::string::npos && text[end - 1] == ',') end = text.find(' ', end + 1);
    end = std::min(end, text.size());
    chain.add(parse_stage(text.substr(begin, end - begin)));
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

class Golden : public testing::Test {
 protected:
  static nlohmann::json load() {
    std::ifstream file(QUIPU_SOURCE_DIR "/tests/data/sampling/stages.json");
    return nlohmann::json::parse(file);
  }
};

TEST_F(Golden, EveryChainKeepsTheRecordedCandidatesWithTheirProbabilities) {
  const nlohmann::json data = load();
  ASSERT_EQ(data["results"].size(), 204u);
  for (const auto& result : data["results"]) {
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
