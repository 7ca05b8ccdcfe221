// Memory that runs out, at every allocation there is from opening a file to the text of a sampled token: each
// time an Error says so, nothing leaks (the sanitizers watch), and what was there before works on.
// Allocations are those by operator new, and the aligned and mapped ones of large buffers (wrapped by the
// linker).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "quipu/quipu.h"
#include "support/files.h"
#include "support/golden.h"

extern "C" {
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
void* __real_mmap(void* address, std::size_t length, int protection, int flags, int file, off_t offset);
}

namespace {

/// Allocations that still succeed; negative: all of them.
std::atomic<long> allocations_left{-1};
std::atomic<long> allocations_made{0};

bool may_allocate() {
  ++allocations_made;
  long left = allocations_left.load();
  while (left > 0 && !allocations_left.compare_exchange_weak(left, left - 1)) {
  }
  return left != 0;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (!may_allocate()) return nullptr;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  return __real_aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
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

extern "C" void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return may_allocate() ? __real_aligned_alloc(alignment, size) : nullptr;
}
extern "C" void* __wrap_mmap(void* address, std::size_t length, int protection, int flags, int file,
                             off_t offset) {
  if ((flags & MAP_ANONYMOUS) != 0 && !may_allocate()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return __real_mmap(address, length, protection, flags, file, offset);
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

/// Calls `work` with allocation 0, 1, 2, ... failing until it succeeds, and `check` after each failure, which
/// must be an Error(out_of_memory). -> how often it failed. With `coarse`, later allocations are tried in
/// growing steps.
template <typename Work>
int fail_until_it_works(
    Work work, const std::function<void()>& check = [] {}, bool coarse = false) {
  for (int n = 0;; n += coarse ? 1 + n / 64 : 1) {
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

std::vector<float> row_of(const Context& context) {
  const auto row = context.logits(-1);
  return {row.begin(), row.end()};
}

class Allocation : public testing::Test {
 protected:
  Allocation() { test::write_golden_model(path_, test::load_golden("llama")); }

  static ContextOptions options() {
    ContextOptions options;
    options.n_threads = options.n_threads_batch = 2;
    return options;
  }

  test::TempDir folder_;
  std::filesystem::path path_ = folder_ / "tiny.gguf";
  const std::vector<Token> tokens_{1, 2, 3, 4, 5};
};

TEST_F(Allocation, FailsToOpenAFileWithAnError) {
  std::optional<ModelFile> file;
  EXPECT_GT(fail_until_it_works([&] { file = ModelFile::open(path_); }), 10);
  EXPECT_EQ(file->architecture(), "llama");
}

TEST_F(Allocation, FailsToLoadAModelWithAnError) {
  for (const bool use_mmap : {true, false}) {
    std::optional<Model> model;
    ModelOptions model_options;
    model_options.use_mmap = use_mmap;
    EXPECT_GT(fail_until_it_works([&] { model = Model::load(path_, model_options); }), 100);
    Context context(*model, options());
    EXPECT_EQ(context.decode(tokens_), DecodeResult::ok);
  }
}

TEST_F(Allocation, FailsToLoadAModelWithAVocabularyWithAnError) {
  std::optional<Model> model;
  EXPECT_GT(fail_until_it_works([&] { model = Model::built_in(); }, [] {}, true), 100);
  EXPECT_EQ(model->tokenizer().size(), model->n_vocab());
}

TEST_F(Allocation, FailsToLookIntoMetadataWithAnError) {
  const Metadata keys = Model::built_in().metadata();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::optional<MetadataValue> value;
    fail_until_it_works([&] { value = keys.value(i); }, [] {}, true);
    fail_until_it_works([&] { keys.type(i); });
    fail_until_it_works([&] { keys.display(i); });
    EXPECT_EQ(*value, keys.value(i));
  }
}

TEST_F(Allocation, FailsToMakeAContextWithAnError) {
  const Model model = Model::load(path_);
  std::optional<Context> context;
  EXPECT_GT(fail_until_it_works([&] { context.emplace(model, options()); }), 10);
  EXPECT_EQ(context->decode(tokens_), DecodeResult::ok);
}

TEST_F(Allocation, LeavesAContextUsableWhenADecodeFails) {
  const Model model = Model::load(path_);
  Context failed(model, options()), undisturbed(model, options());
  for (const std::vector<Token>& tokens :
       {std::vector<Token>{1, 2, 3, 4, 5}, std::vector<Token>{6}, std::vector<Token>{7, 8}}) {
    fail_until_it_works([&] { EXPECT_EQ(failed.decode(tokens), DecodeResult::ok); });
    EXPECT_EQ(undisturbed.decode(tokens), DecodeResult::ok);
    EXPECT_EQ(row_of(failed), row_of(undisturbed));
    EXPECT_EQ(failed.max_position(0), undisturbed.max_position(0));
  }
}

TEST_F(Allocation, LeavesTheMemoryAsItWasWhenAStateCannotBeLoaded) {
  const Model model = Model::load(path_);
  ContextOptions several = options();
  several.n_seq_max = 3;
  Context source(model, several);
  source.decode(std::vector<Token>{1, 2, 3, 4, 5});
  source.copy(0, 1);
  source.add(1, 2, -1, 7);
  const auto whole = source.save();
  const auto sequence = source.save({.sequence = 1});

  Context target(model, several);
  target.decode(std::vector<Token>(20, 6));
  target.copy(0, 1, 0, 18);
  target.add(1, 10, -1, 3);
  const auto before = target.save();
  const auto is_as_before = [&] { ASSERT_EQ(target.save(), before); };
  EXPECT_GT(fail_until_it_works([&] { target.load(sequence, 1); }, is_as_before), 10);
  EXPECT_EQ(target.save({.sequence = 1}), source.save({.sequence = 1}));
  target.load(before);
  EXPECT_GT(fail_until_it_works([&] { target.load(whole); }, is_as_before), 10);
  EXPECT_EQ(target.save(), whole);
}

TEST_F(Allocation, LeavesTheMemoryAsItWasWhenAnOperationFails) {
  const Model model = Model::load(path_);
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

TEST_F(Allocation, LeavesAContextUsableWhenASwitchOrAnEncodingFails) {
  const Model model = Model::load(path_);
  Context failed(model, options()), undisturbed(model, options());
  ASSERT_EQ(failed.decode(tokens_), DecodeResult::ok);
  ASSERT_EQ(undisturbed.decode(tokens_), DecodeResult::ok);
  EXPECT_GT(fail_until_it_works([&] { EXPECT_EQ(failed.encode(tokens_), DecodeResult::ok); }), 10);
  EXPECT_GT(fail_until_it_works([&] { failed.set_threads(3, 3); }), 0);
  std::optional<ThreadPool> pool;
  EXPECT_GT(fail_until_it_works([&] { pool.emplace(2); }), 0);
  failed.attach(*pool);
  EXPECT_GT(fail_until_it_works([&] { failed.detach(); }), 0);
  failed.set_embeddings(true);
  fail_until_it_works([&] { EXPECT_EQ(failed.decode(tokens_), DecodeResult::ok); });
  EXPECT_EQ(undisturbed.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(row_of(failed), row_of(undisturbed));
}

TEST_F(Allocation, LeavesAContextUsableWhenSavingOrLoadingFails) {
  const Model model = Model::load(path_);
  Context saved(model, options()), loaded(model, options());
  ASSERT_EQ(saved.decode(tokens_), DecodeResult::ok);
  std::vector<std::byte> state;
  EXPECT_GT(fail_until_it_works([&] { state = saved.save({.tokens = tokens_}); }), 0);
  std::vector<Token> tokens;
  EXPECT_GT(fail_until_it_works([&] { tokens = loaded.load(state); }), 0);
  EXPECT_EQ(tokens, tokens_);
  ASSERT_EQ(saved.decode(tokens_), DecodeResult::ok);
  ASSERT_EQ(loaded.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(row_of(loaded), row_of(saved));
}

TEST_F(Allocation, LeavesASamplerAsItWas) {
  const std::vector<float> logits(100, 0.5f);
  const SamplingOptions sampling{.seed = 7};
  Sampler undisturbed(sampling);
  std::optional<Sampler> failed;
  EXPECT_GT(fail_until_it_works([&] { failed.emplace(sampling); }), 1);
  for (int i = 0; i < 3; ++i) {
    Token token = kNoToken;
    fail_until_it_works([&] { token = failed->sample(logits); });
    fail_until_it_works([&] { failed->accept(token); });
    EXPECT_EQ(token, undisturbed.sample(logits));
    undisturbed.accept(token);
  }
  std::optional<Sampler> copy;
  fail_until_it_works([&] { copy = *failed; });
  EXPECT_EQ(copy->sample(logits), undisturbed.sample(logits));
}

TEST_F(Allocation, FailsToHandleTextWithAnError) {
  const std::string text = "Once upon a time, there was a little cat whose name was \xf0\x9f\xa6\x99.";
  const Tokenizer tokenizer = Model::built_in().tokenizer();
  std::vector<Token> tokens;
  EXPECT_GT(fail_until_it_works([&] { tokens = tokenizer.tokenize(text, {.add_special = false}); }), 0);
  EXPECT_EQ(tokens, tokenizer.tokenize(text, {.add_special = false}));
  std::string back;
  EXPECT_GT(fail_until_it_works([&] { back = tokenizer.detokenize(tokens); }), 0);
  EXPECT_EQ(back, text);
  std::optional<TextStream> stream;
  EXPECT_GT(fail_until_it_works([&] { stream.emplace(tokenizer); }), 0);
  std::string streamed;
  for (const Token token : tokens) {
    std::string piece;
    fail_until_it_works([&] { piece = stream->add(token); });
    streamed += piece;
  }
  EXPECT_EQ(streamed, text);
}

TEST_F(Allocation, LeavesABatchAsItWas) {
  const std::vector<float> embedding(4, 1.0f);
  const std::vector<SequenceId> sequences{0, 1, 2};
  Batch batch;
  for (int i = 0; i < 20; ++i) {
    fail_until_it_works([&] {
      EXPECT_EQ(batch.size(), static_cast<std::size_t>(2 * i));
      batch.add(i, i, {0, 1}, true);
    });
    fail_until_it_works([&] { batch.add(embedding, i, sequences, false); });
    fail_until_it_works([&] { batch.set_sequences(0, sequences); });
  }
  EXPECT_EQ(batch.sequence_ends().back(), batch.sequences().size());
  EXPECT_EQ(batch.embeddings().size(), batch.size() * 4);
}

// Prompt and first tokens make everything; then neither memory is asked for nor a graph built.
TEST_F(Allocation, IsNotNeededToGenerateSteadily) {
  const Model model = Model::built_in();
  Context context(model, options());
  Sampler sampler({.seed = 3});
  TextStream text(model.tokenizer());
  std::size_t n_bytes = 0;
  const auto generate = [&](int n) {
    for (int i = 0; i < n; ++i) {
      const Token token = sampler.sample(context.logits(-1));
      sampler.accept(token);
      n_bytes += text.add(token).size();
      ASSERT_EQ(context.decode({&token, 1}), DecodeResult::ok);
    }
  };
  ASSERT_EQ(context.decode(model.tokenizer().tokenize("Once upon a time")), DecodeResult::ok);
  generate(2);
  const Counters before = context.counters();
  const long made = allocations_made;
  generate(200);
  EXPECT_EQ(allocations_made - made, 0);
  EXPECT_EQ(context.counters().reallocations, before.reallocations);
  EXPECT_EQ(context.counters().plans_reused, before.plans_reused + 200);
  EXPECT_GT(n_bytes, 200u);
}

}  // namespace
}  // namespace quipu
