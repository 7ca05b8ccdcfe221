// Observed plans: every node can be looked at, and the numbers are those of an ordinary run.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "backend/cpu/plan_fixture.h"
#include "backend/device.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"

namespace quipu {
namespace {

using test::CpuPlan;
using test::random_floats;
using test::TestWeight;

/// Keeps a copy of what it sees; says stop after `limit` nodes.
class Recorder final : public RunObserver {
 public:
  bool observe(const ObservedNode& node) override {
    const std::size_t n =
        node.output.dims[0] * node.output.dims[1] * node.output.dims[2] * node.output.dims[3];
    const auto* values = static_cast<const float*>(node.output.data);
    names.push_back(std::string(node.output.name));
    outputs[names.back()] = std::vector<float>(values, values + n);
    n_weights += node.inputs.size() > 1 && node.inputs[1].weight != nullptr ? 1 : 0;
    return names.size() < limit;
  }

  std::vector<std::string> names;
  std::map<std::string, std::vector<float>> outputs;
  std::size_t n_weights = 0;
  std::size_t limit = 1000;
};

class ObservedPlan : public CpuPlan {
 protected:
  ObservedPlan() {
    const Value x = graph_.input("x", ElementType::f32, {Dim::tokens(), 64});
    const Value normed = graph_.label(rms_norm(x, {}, 1e-5f), "normed");
    const Value gate = graph_.label(matmul(normed, graph_.weight(a_.weight())), "gate");
    const Value up = graph_.label(matmul(normed, graph_.weight(b_.weight())), "up");
    graph_.output(graph_.label(gated(Activation::silu, gate, up), "result"));
  }

  std::vector<float> run(Plan& plan, unsigned n_threads, RunObserver* observer) {
    std::vector<float> out(5 * 32);
    const void* inputs[] = {input_.data()};
    float* outputs[] = {out.data()};
    plan.run({.extents = {5, 0},
              .inputs = inputs,
              .outputs = outputs,
              .layouts = {},
              .n_threads = n_threads,
              .observer = observer});
    return out;
  }

  TestWeight a_{*device_, "a", ElementType::q8_0, WeightRole::matrix, {32, 64}, random_floats(32 * 64, 1)};
  TestWeight b_{*device_, "b", ElementType::q4_0, WeightRole::matrix, {32, 64}, random_floats(32 * 64, 2)};
  std::vector<float> input_ = random_floats(5 * 64, 3);
};

TEST_F(ObservedPlan, ShowsEveryNodeInOrder) {
  Recorder recorder;
  run(*device_->compile_observed(graph_, {8, 0}, 2), 2, &recorder);
  EXPECT_EQ(recorder.names, (std::vector<std::string>{"normed", "gate", "up", "result"}));
  EXPECT_EQ(recorder.n_weights, 2u);
}

TEST_F(ObservedPlan, GivesTheBitsOfAnOrdinaryRun) {
  const std::vector<float> expected = run(*device_->compile(graph_, {8, 0}, 3), 3, nullptr);
  const auto plan = device_->compile_observed(graph_, {8, 0}, 3);
  for (const unsigned n_threads : {1u, 2u, 3u}) {
    Recorder recorder;
    EXPECT_EQ(run(*plan, n_threads, &recorder), expected);
    EXPECT_EQ(recorder.outputs.at("result"), expected);
  }
  EXPECT_EQ(run(*plan, 2, nullptr), expected);
}

TEST_F(ObservedPlan, EndsEarlyWhenTheObserverSaysSo) {
  const auto plan = device_->compile_observed(graph_, {8, 0}, 2);
  Recorder recorder;
  recorder.limit = 2;
  run(*plan, 2, &recorder);
  EXPECT_EQ(recorder.names, (std::vector<std::string>{"normed", "gate"}));
  Recorder again;
  run(*plan, 2, &again);
  EXPECT_EQ(again.names.size(), 4u);
}

}  // namespace
}  // namespace quipu
