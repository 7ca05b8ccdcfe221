// Long runs of one kind of character on a small stack: neither the splitting patterns nor merging may recurse
// or take quadratic time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <functional>

#include "vocab/pre_tokenizer.h"
#include "vocab/tiny_vocab.h"

namespace quipu {
namespace {

// Sanitizers slow everything down by some factor.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSecond = 15;
#else
constexpr double kSecond = 1;
#endif

double cpu_seconds_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Runs `work` on a thread with 512 KiB of stack; returns seconds of processor time.
double on_a_small_stack(const std::function<void()>& work) {
  struct Job {
    const std::function<void()>& work;
    std::string error;
    double seconds = 0;
  } job{work, {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    Job& mine = *static_cast<Job*>(argument);
    try {
      mine.work();
    } catch (const std::exception& error) {
      mine.error = error.what();
    }
    mine.seconds = cpu_seconds_of_this_thread();
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, run, &job), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(job.error, "");
  return job.seconds;
}

std::string repeated(std::string_view unit, std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text.append(unit);
  return text;
}

const std::vector<std::string> kUnits = {"A",  "Z",      " ",      "\n",     ".",  "\u4F60", "\u0301",
                                         "aA", "1",      " \n",    "a ",     "'",  "\r",     "\xFF",
                                         "<",  "\u00E9", "\u0663", "\u3000", "1a", "\u2581"};

struct Tokenizer {
  std::string name;
  Vocab vocab;
};

std::vector<Tokenizer> tokenizers() {
  std::vector<Tokenizer> all;
  // Merges that make runs long: a tree over equal letters, and one over pairs.
  const std::vector<std::string> merges = {"A A",           "AA AA", "AAAA AAAA", "a A",          "aA aA",
                                           "\u0120 \u0120", ". .",   ".. ..",     "\u010A \u010A"};
  const std::vector<TinyToken> tokens = {{"AA"},           {"AAAA"}, {"AAAAAAAA"}, {"aA"},          {"aAaA"},
                                         {"\u0120\u0120"}, {".."},   {"...."},     {"\u010A\u010A"}};
  for (const char* pre : {"gpt-2", "llama-bpe", "gpt-4o", "default"}) {
    all.push_back({pre, Vocab::load(tiny_bpe(pre, merges, tokens))});
  }
  all.push_back(
      {"gemma4", Vocab::load(tiny_plain_bpe(
                     "gemma4", {"A A", "AA AA", "\u2581 \u2581", "\n \n", "a A"},
                     {{"AA"}, {"AAAA"}, {"\u2581"}, {"\u2581\u2581"}, {"\n\n"}, {"A"}, {"a"}, {"aA"}}))});
  all.push_back(
      {"spm",
       Vocab::load(tiny_spm(
           {{"\u2581"}, {"A"}, {"AA"}, {"AAAA"}, {"aA"}, {"\u2581\u2581"}, {".."}, {"\u4F60\u4F60"}}))});
  const std::vector<TinyToken> pieces = {
      {"\u2581", TokenType::normal, -3}, {"A", TokenType::normal, -2},
      {"AA", TokenType::normal, -1},     {repeated("A", 1000), TokenType::normal, -1},
      {"a", TokenType::normal, -2},      {"Aa", TokenType::normal, -1},
      {".", TokenType::normal, -2}};
  all.push_back({"unigram", Vocab::load(tiny_unigram(pieces))});
  all.push_back({"plamo2", Vocab::load(tiny_plamo2(pieces))});
  all.push_back({"rwkv", Vocab::load(tiny_rwkv({"AA", repeated("A", 1000), "aA"}))});
  all.push_back({"word piece", Vocab::load(tiny_word_piece({"\u2581", "\u2581a", "a", repeated("a", 1000),
                                                            "\u2581.", "\u2581\u4F60", "1"}))});
  return all;
}

bool keeps_text(const std::string& name) {
  return name != "unigram" && name != "word piece";
}

TEST(LongText, IsSplitInLessThanASecondByEveryPreTokenizer) {
  for (const vocab::PreTokenizerRow& row : vocab::pre_tokenizers()) {
    const vocab::PreTokenizer pre_tokenizer(row);
    for (const std::string& unit : kUnits) {
      if (unit == "\xFF") continue;  // is never seen by a pre-tokenizer
      for (const std::string& text :
           {repeated(unit, 200'000), repeated("x", 1).append(repeated(unit, 20'000)).append("y")}) {
        std::vector<std::size_t> ends;
        EXPECT_LT(on_a_small_stack([&] { pre_tokenizer.split(text, ends); }), kSecond)
            << row.names[0] << " '" << unit << "'";
        EXPECT_EQ(ends.back(), text.size()) << row.names[0] << " '" << unit << "'";
      }
    }
  }
}

TEST(LongText, OfOneKindTakesLessThanASecondOnASmallStack) {
  constexpr std::size_t kLength = 200'000;
  for (const Tokenizer& tokenizer : tokenizers()) {
    for (const std::string& unit : kUnits) {
      const std::string text = repeated(unit, kLength);
      std::string decoded;
      const double seconds = on_a_small_stack([&] {
        decoded = tokenizer.vocab.detokenize(tokenizer.vocab.tokenize(text, false, false), false, false);
      });
      EXPECT_LT(seconds, kSecond) << tokenizer.name << " '" << unit << "'";
      if (!keeps_text(tokenizer.name) || unit == "\u2581") continue;
      if (unit == "\xFF" && tokenizer.name != "spm" && tokenizer.name != "rwkv") continue;  // replaced
      EXPECT_TRUE(decoded == text) << tokenizer.name << " '" << unit << "'";
    }
  }
}

TEST(LongText, TakesTimeInProportionToItsLength) {
  for (const Tokenizer& tokenizer : tokenizers()) {
    for (const std::string& unit : kUnits) {
      const auto seconds_for = [&](std::size_t n) {
        const std::string text = repeated(unit, n);
        double best = 1e9;
        for (int i = 0; i < 3; ++i)
          best = std::min(best, on_a_small_stack([&] { tokenizer.vocab.tokenize(text, false, true); }));
        return best;
      };
      // Quadratic time would be a factor of 64; thread start and noise are bounded by the constant.
      EXPECT_LT(seconds_for(80'000), 24 * seconds_for(10'000) + 0.05)
          << tokenizer.name << " '" << unit << "'";
    }
  }
}

TEST(LongText, ManySpecialTokensInItTakeTimeInProportion) {
  const Vocab vocab =
      Vocab::load(tiny_bpe("gpt-2", {}, {{"<a>", TokenType::control}, {"<b>", TokenType::control}}));
  const std::string text = repeated("<a>x<b>", 50'000);
  std::vector<Token> tokens;
  EXPECT_LT(on_a_small_stack([&] { tokens = vocab.tokenize(text, false, true); }), 5.0);
  EXPECT_EQ(tokens.size(), 150'000u);
}

TEST(LongText, SplitsLikeShortText) {
  // The last words of a long run are those of a short one.
  for (const Tokenizer& tokenizer : tokenizers()) {
    const std::string tail = "z don't 12  x\n";
    std::vector<std::string> expected = pieces_of(tokenizer.vocab, "\n" + tail);
    std::vector<std::string> pieces = pieces_of(tokenizer.vocab, std::string(30'000, 'A') + "\n" + tail);
    expected.erase(expected.begin(), expected.begin() + (tokenizer.name == "spm" ? 1 : 0));
    ASSERT_GT(pieces.size(), expected.size());
    pieces.erase(pieces.begin(), pieces.end() - static_cast<std::ptrdiff_t>(expected.size()));
    EXPECT_EQ(pieces, expected) << tokenizer.name;
  }
}

}  // namespace
}  // namespace quipu
