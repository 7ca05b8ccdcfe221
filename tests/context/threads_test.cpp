// Several threads on one model, and several threads inside a context.
#include <gtest/gtest.h>

#include <thread>

#include "base/thread_pool.h"
#include "context/test_context.h"

namespace quipu::test {
namespace {

TEST(ContextThreads, ContextsShareAModel) {
  for (const char* name : {"llama", "qwen3moe-experts", "gemma3"}) {
    const auto model = model_named(name);
    const std::vector<Token> text = some_tokens(*model, 40);
    std::vector<Bits> results(3);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < results.size(); ++i) {
        threads.emplace_back([&, i] {
          ContextParams params = small_params();
          params.n_threads = params.n_threads_batch = static_cast<int>(i) + 1;
          params.n_ubatch = i == 2 ? 7 : 64;
          InferenceContext context(model, params);
          context.decode({.tokens = std::span(text).first(30)});
          for (std::size_t t = 30; t < text.size(); ++t)
            context.decode({.tokens = std::span(text).subspan(t, 1)});
          results[i] = bits_of(context.logits(-1));
        });
      }
    }
    EXPECT_FALSE(results[0].empty());
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
  }
}

TEST(ContextThreads, ContextsShareAPool) {
  const auto model = model_named("llama");
  const std::vector<Token> text = some_tokens(*model, 40);
  InferenceContext alone(model, small_params());
  ASSERT_EQ(alone.decode({.tokens = text}), DecodeStatus::ok);
  const Bits expected = bits_of(alone.logits(-1));
  const auto pool = std::make_shared<WorkerPool>(3);
  std::vector<Bits> results(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < results.size(); ++i) {
      threads.emplace_back([&, i] {
        ContextParams params = small_params();
        params.n_threads = params.n_threads_batch = static_cast<int>(i) + 2;
        InferenceContext context(model, params);
        context.attach_pools(pool, nullptr);
        context.decode({.tokens = std::span(text).first(20)});
        if (i == 2) context.attach_pools(nullptr, nullptr);
        for (std::size_t t = 20; t < text.size(); ++t) {
          context.decode({.tokens = std::span(text).subspan(t, 1)});
          if (i == 2 && t == 30) context.attach_pools(pool, nullptr);
        }
        results[i] = bits_of(context.logits(-1));
      });
    }
  }
  for (const Bits& result : results) EXPECT_EQ(result, expected);
  EXPECT_EQ(pool.use_count(), 1);
}

TEST(ContextThreads, AContextMayMoveBetweenThreads) {
  const auto model = model_named("llama");
  const std::vector<Token> text = some_tokens(*model, 20);
  ContextParams params = small_params();
  params.n_threads = params.n_threads_batch = 2;
  InferenceContext context(model, params);
  for (std::size_t t = 0; t < text.size(); t += 5) {
    std::jthread([&] { context.decode({.tokens = std::span(text).subspan(t, 5)}); });
  }
  EXPECT_EQ(context.memory().max_position(0), 19);
}

}  // namespace
}  // namespace quipu::test
