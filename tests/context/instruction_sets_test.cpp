// The same bits with every instruction set that this processor has, also when all that a run need not read is
// poisoned. A process chooses its kernels once, so each set computes in a process of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "backend/cpu/kernels/dispatch.h"
#include "context/test_context.h"

namespace quipu::test {
namespace {

struct Case {
  std::string model;
  std::optional<ElementType> matrices = std::nullopt;  ///< of a golden model
  ElementType cache = ElementType::f16;
};

std::string name_of(const Case& tested) {
  std::string name = tested.model;
  if (tested.matrices) name.append("_").append(info(*tested.matrices).name);
  name.append("_cache_").append(info(tested.cache).name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
void PrintTo(const Case& tested, std::ostream* out) {
  *out << name_of(tested);
}

/// Logits of a prompt, of single tokens after it, and of two more in one batch.
std::vector<float> logits(const std::shared_ptr<const LoadedModel>& model, ElementType cache) {
  ContextParams params = small_params();
  params.type_k = params.type_v = cache;
  params.n_threads = params.n_threads_batch = 2;
  InferenceContext context(model, params);
  const std::vector<Token> text = some_tokens(*model, 23);
  std::vector<float> all;
  std::size_t done = 0;
  for (const std::size_t n : {19u, 1u, 1u, 2u}) {
    const TestBatch batch = TestBatch().add(std::span(text).subspan(done, n), static_cast<Position>(done), 0);
    EXPECT_EQ(context.decode(batch.view()), DecodeStatus::ok);
    for (std::size_t i = 0; i < n; ++i) {
      const std::span<const float> row = context.logits(static_cast<std::ptrdiff_t>(i));
      all.insert(all.end(), row.begin(), row.end());
    }
    done += n;
  }
  return all;
}

void send(int end, const std::vector<float>& values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  for (std::size_t left = values.size() * sizeof(float); left > 0;) {
    const ssize_t n = write(end, bytes, left);
    if (n <= 0) throw std::runtime_error("a pipe broke");
    bytes += n;
    left -= static_cast<std::size_t>(n);
  }
}

/// What `compute` gives in a process with these kernels.
template <typename Compute>
std::vector<float> in_process(std::string_view kernels, bool poisons, Compute compute) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    setenv("QUIPU_CPU", std::string(kernels).c_str(), 1);
    if (poisons) setenv("QUIPU_POISON", "1", 1);
    try {
      send(ends[1], compute());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  close(ends[1]);
  std::vector<char> received;
  char part[4096];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;)
    received.insert(received.end(), part, part + n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << kernels;
  std::vector<float> values(received.size() / sizeof(float));
  std::memcpy(values.data(), received.data(), values.size() * sizeof(float));
  return values;
}

class InstructionSets : public ::testing::TestWithParam<Case> {};

TEST_P(InstructionSets, GiveTheSameBits) {
  const auto model = model_named(GetParam().model, GetParam().matrices);
  const auto compute = [&] { return logits(model, GetParam().cache); };
  const std::vector<float> expected = in_process("scalar", false, compute);
  ASSERT_FALSE(expected.empty());
  for (const float value : expected) ASSERT_TRUE(std::isfinite(value));
  for (const cpu::KernelTable* table : cpu::runnable_kernels()) {
    EXPECT_EQ(bits_of(in_process(table->name, true, compute)), bits_of(expected)) << table->name;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all = {{"quipu-mini"}};
  for (const ElementTypeInfo& type : all_element_types()) {
    if (type.decodable) all.push_back({"llama", type.type});
  }
  for (const ElementType cache :
       {ElementType::f32, ElementType::bf16, ElementType::q8_0, ElementType::q5_1, ElementType::q5_0,
        ElementType::q4_1, ElementType::q4_0, ElementType::iq4_nl}) {
    all.push_back({"quipu-mini", {}, cache});
  }
  all.push_back({"qwen3moe-experts", ElementType::q6_k});
  all.push_back({"gemma3", ElementType::q4_0, ElementType::f32});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, InstructionSets, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return name_of(tested.param); });

}  // namespace
}  // namespace quipu::test
