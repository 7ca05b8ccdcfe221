// What it costs to choose a token from the logits of a large vocabulary: the usual chain, and stages alone.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "quipu/sampler.h"

namespace {

constexpr std::size_t kVocab = 150'000;

/// Like those of models: most tokens far below a few.
std::vector<float> logits() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> result(kVocab);
  for (float& logit : result) logit = normal(random);
  return result;
}

void sample(benchmark::State& state, quipu::Sampler sampler) {
  const std::vector<float> row = logits();
  for (quipu::Token token = 0; token < 1000; ++token) sampler.accept(token % 97);
  for (auto _ : state) {
    const quipu::Token token = sampler.sample(row);
    sampler.accept(token);
    benchmark::DoNotOptimize(token);
  }
}

void usual(benchmark::State& state) {
  sample(state, quipu::Sampler(quipu::SamplingOptions{.seed = 1}));
}
void with_penalties(benchmark::State& state) {
  quipu::SamplingOptions options{.penalty_repeat = 1.1f, .dry_multiplier = 0.8f, .seed = 1};
  options.dry_breakers.clear();
  sample(state, quipu::Sampler(options));
}
void stage_alone(benchmark::State& state, const quipu::SamplerStage& stage) {
  sample(state, quipu::Sampler::chain({stage, quipu::stage::Draw{1}}));
}

}  // namespace

BENCHMARK(usual)->Unit(benchmark::kMicrosecond);
BENCHMARK(with_penalties)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, greedy, quipu::stage::Greedy{})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, dist, quipu::stage::TopK{0})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, top_p, quipu::stage::TopP{0.95f})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, min_p, quipu::stage::MinP{0.05f})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, typical, quipu::stage::Typical{0.9f})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, top_n_sigma, quipu::stage::TopNSigma{1})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, xtc, quipu::stage::Xtc{1, 0.01f})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, mirostat, quipu::stage::Mirostat{})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_alone, mirostat2, quipu::stage::Mirostat2{})->Unit(benchmark::kMicrosecond);
