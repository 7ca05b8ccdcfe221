// What is made and let go again leaves nothing behind: neither memory nor descriptors nor threads.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "quipu/quipu.h"
#include "support/files.h"
#include "support/golden.h"

namespace quipu::test {
namespace {

std::size_t count_in(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::size_t resident_kib() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4;  // pages of 4 KiB
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsFreedMemory = true;
#else
constexpr bool kKeepsFreedMemory = false;
#endif

class Lifetime : public testing::Test {
 protected:
  Lifetime() { write_golden_model(path_, load_golden("llama")); }

  static ContextOptions options() {
    ContextOptions options;
    options.n_ctx = 256;
    options.n_threads = options.n_threads_batch = 2;
    return options;
  }
  static void use(const Model& model) {
    Context context(model, options());
    for (Token token = 1; token <= 4; ++token) EXPECT_EQ(context.decode({&token, 1}), DecodeResult::ok);
  }
  /// After a first part, which may fill caches, `action` leaves everything as it was.
  static void expect_nothing_left(int n, const std::function<void()>& action) {
    for (int i = 0; i < n / 4 + 2; ++i) action();
    const std::size_t descriptors = count_in("/proc/self/fd"), threads = count_in("/proc/self/task");
    const std::size_t before = resident_kib();
    for (int i = 0; i < n; ++i) action();
    EXPECT_EQ(count_in("/proc/self/fd"), descriptors);
    // A thread that was joined may take a moment to vanish from the list.
    for (int i = 0; i < 100 && count_in("/proc/self/task") > threads; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_LE(count_in("/proc/self/task"), threads);
    if (!kKeepsFreedMemory) {
      EXPECT_LT(resident_kib(), before + 2048);
    }
  }

  TempDir folder_;
  std::filesystem::path path_ = folder_ / "m.gguf";
};

TEST_F(Lifetime, OfContexts) {
  const Model model = Model::load(path_);
  expect_nothing_left(200, [&] { use(model); });
}

TEST_F(Lifetime, OfModels) {
  expect_nothing_left(50, [&] { use(Model::load(path_)); });
}

TEST_F(Lifetime, OfWhatCannotBeMade) {
  const Model model = Model::load(path_);
  const std::vector<std::byte> bytes = read_bytes(path_);
  const std::filesystem::path cut = folder_ / "cut.gguf";
  std::ofstream(cut, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size() / 2));
  expect_nothing_left(20, [&] {
    ContextOptions bad = options();
    bad.n_seq_max = 1000;
    EXPECT_THROW(Context(model, bad), Error);
    bad = options();
    bad.type_k = CacheType::q8_0;  // the model's heads are too narrow
    EXPECT_THROW(Context(model, bad), Error);
    EXPECT_THROW(Model::load(cut), Error);
    EXPECT_THROW(Model::load(folder_ / "absent.gguf"), Error);
  });
}

TEST_F(Lifetime, OfPoolsSamplersAndObservers) {
  struct Silent final : Observer {
    bool observe(const NodeView&) override { return true; }
  };
  const Model model = Model::load(path_);
  expect_nothing_left(20, [&] {
    Context context(model, options());
    context.attach(ThreadPool(2), ThreadPool(3));
    context.set_observer(std::make_shared<Silent>());
    Sampler sampler({.seed = 1});
    const std::vector<Token> tokens{1, 2, 3};
    EXPECT_EQ(context.decode(tokens), DecodeResult::ok);
    sampler.sample(context.logits(-1));
  });
}

TEST_F(Lifetime, OfContextsInSeveralThreads) {
  const Model model = Model::load(path_);
  expect_nothing_left(20, [&] { std::jthread first([&] { use(model); }), second([&] { use(model); }); });
}

}  // namespace
}  // namespace quipu::test
