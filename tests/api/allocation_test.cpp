// Memory that runs out, at every allocation there is from loading a model to its second decode: each time an
// Error says so, nothing leaks (the sanitizers watch), and what was there before works on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>

#include "quipu/quipu.h"
#include "support/files.h"
#include "support/golden.h"

namespace {

/// Allocations that still succeed; negative: all of them.
std::atomic<long> allocations_left{-1};

bool may_allocate() {
  long left = allocations_left.load();
  while (left > 0 && !allocations_left.compare_exchange_weak(left, left - 1)) {
  }
  return left != 0;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (!may_allocate()) return nullptr;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

constexpr std::size_t kDefaultAlignment = alignof(std::max_align_t);

}  // namespace

// NOLINTBEGIN(misc-new-delete-overloads): the program's own allocator, which can be told to fail.
void* operator new(std::size_t size) {
  return allocate_or_throw(size, kDefaultAlignment);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size, kDefaultAlignment);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, kDefaultAlignment);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, kDefaultAlignment);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
// NOLINTEND(misc-new-delete-overloads)

namespace quipu {
namespace {

/// Fails allocation number `n` and all that follow, while it lives.
class FailingFrom {
 public:
  explicit FailingFrom(long n) { allocations_left = n; }
  ~FailingFrom() { allocations_left = -1; }
};

/// Calls `work` with allocation 0, 1, 2, ... failing until it succeeds, and `check` after each failure, an
/// Error(out_of_memory). -> how often it failed.
template <typename Work>
int fail_until_it_works(
    Work work, const std::function<void()>& check = [] {}) {
  for (int n = 0;; ++n) {
    try {
      const FailingFrom failing(n);
      work();
      return n;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << "allocation " << n << ": " << error.message();
    }
    check();
  }
}

class Allocation : public testing::Test {
 protected:
  Allocation() { test::write_golden_model(folder_ / "tiny.gguf", test::load_golden("llama")); }

  ContextOptions options() const {
    ContextOptions options;
    options.n_threads = options.n_threads_batch = 2;
    return options;
  }

  test::TempDir folder_;
};

TEST_F(Allocation, FailsToMakeAContextWithAnError) {
  const Model model = Model::load(folder_ / "tiny.gguf");
  std::optional<Context> context;
  EXPECT_GT(fail_until_it_works([&] { context.emplace(model, options()); }), 10);
  EXPECT_EQ(context->decode(std::vector<Token>{1, 2, 3}), DecodeResult::ok);
}

TEST_F(Allocation, LeavesAContextUsableWhenADecodeFails) {
  const Model model = Model::load(folder_ / "tiny.gguf");
  Context failed(model, options());
  Context undisturbed(model, options());
  for (const std::vector<Token>& tokens :
       {std::vector<Token>{1, 2, 3, 4, 5}, std::vector<Token>{6}, std::vector<Token>{7, 8}}) {
    fail_until_it_works([&] { EXPECT_EQ(failed.decode(tokens), DecodeResult::ok); });
    EXPECT_EQ(undisturbed.decode(tokens), DecodeResult::ok);
    const auto expected = undisturbed.logits(-1);
    const auto logits = failed.logits(-1);
    EXPECT_TRUE(std::equal(logits.begin(), logits.end(), expected.begin(), expected.end()));
    EXPECT_EQ(failed.max_position(0), undisturbed.max_position(0));
  }
}

TEST_F(Allocation, LeavesTheMemoryAsItWasWhenAStateCannotBeLoaded) {
  const Model model = Model::load(folder_ / "tiny.gguf");
  ContextOptions several = options();
  several.n_seq_max = 3;
  Context source(model, several);
  source.decode(std::vector<Token>{1, 2, 3, 4, 5});
  source.copy(0, 1);
  source.add(1, 2, -1, 7);
  const auto whole = source.save();
  const auto sequence = source.save_sequence(1);

  Context target(model, several);
  target.decode(std::vector<Token>(20, 6));
  target.copy(0, 1, 0, 18);
  target.add(1, 10, -1, 3);
  const auto before = target.save();
  const auto is_as_before = [&] { ASSERT_EQ(target.save(), before); };
  EXPECT_GT(fail_until_it_works([&] { target.load_sequence(1, sequence); }, is_as_before), 10);
  EXPECT_EQ(target.save_sequence(1), source.save_sequence(1));
  target.load(before);
  EXPECT_GT(fail_until_it_works([&] { target.load(whole); }, is_as_before), 10);
  EXPECT_EQ(target.save(), whole);
}

TEST_F(Allocation, LeavesTheMemoryAsItWasWhenAnOperationFails) {
  const Model model = Model::load(folder_ / "tiny.gguf");
  ContextOptions several = options();
  several.n_seq_max = 3;
  Context context(model, several);
  context.decode(std::vector<Token>(40, 6));
  context.copy(0, 1, 0, 30);
  for (const std::function<void()>& change : std::vector<std::function<void()>>{
           [&] { context.copy(0, 2, 5, 25); },
           [&] { context.add(1, 10, -1, 3); },
           [&] { context.divide(0, 4, 20, 2); },
           [&] { context.remove(1, 12, 20); },
       }) {
    const auto before = context.save();
    fail_until_it_works(change, [&] { ASSERT_EQ(context.save(), before); });
    EXPECT_NE(context.save(), before);
  }
}

TEST_F(Allocation, IsNotNeededToGenerateSteadily) {
  const Model model = Model::load(folder_ / "tiny.gguf");
  Context context(model, options());
  const std::vector<Token> prompt(20, 3);
  context.decode(prompt);
  const Token token = 5;
  context.decode({&token, 1});
  const FailingFrom failing(0);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(context.decode({&token, 1}), DecodeResult::ok);
}

}  // namespace
}  // namespace quipu
