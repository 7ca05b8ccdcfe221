// Times tokenizing a text, in turns with a peer where one is named: a command that takes the same three
// arguments and prints one line of JSON with "ms" (median) and "tokens". One thread.
// Run: tokenize_bench VOCAB.gguf TEXT_FILE [REPEATS [PEER_COMMAND]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/reader.h"
#include "vocab/vocab.h"

namespace quipu {
namespace {

constexpr int kTurns = 3;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double time_of(const Vocab& vocab, const std::string& text, std::size_t& n_tokens) {
  const auto start = std::chrono::steady_clock::now();
  n_tokens = vocab.tokenize(text, true, false).size();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe.get())) != EOF;)
    output.push_back(static_cast<char>(c));
  return output;
}

double number_after(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\":");
  if (at == std::string::npos) fail(ErrorCode::invalid_argument, "the peer printed no '{}': {}", name, json);
  return std::strtod(json.c_str() + at + name.size() + 3, nullptr);
}

int run(int argc, char** argv) {
  if (argc < 3) fail(ErrorCode::invalid_argument, "usage: {} VOCAB TEXT [REPEATS [PEER_COMMAND]]", argv[0]);
  const int repeats = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  const Vocab vocab = Vocab::load(gguf::Reader::open(argv[1]).metadata());
  std::ifstream file(argv[2], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});

  std::vector<double> ours;
  std::vector<double> peers;
  std::size_t n_tokens = 0;
  double peer_tokens = 0;
  time_of(vocab, text, n_tokens);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < repeats; ++i) ours.push_back(time_of(vocab, text, n_tokens));
    if (argc <= 4) continue;
    const std::string json = output_of(fmt::format("{} '{}' '{}' {}", argv[4], argv[1], argv[2], repeats));
    peers.push_back(number_after(json, "ms"));
    peer_tokens = number_after(json, "tokens");
  }
  const double ms = median(ours);
  fmt::print("{}: {} tokens, {:.2f} ms, {:.1f} MB/s", argv[1], n_tokens, ms,
             static_cast<double>(text.size()) / 1e3 / ms);
  if (!peers.empty()) {
    fmt::print("; peer {} tokens, {:.2f} ms; ratio {:.1f}", peer_tokens, median(peers), median(peers) / ms);
  }
  fmt::print("\n");
  return 0;
}

}  // namespace
}  // namespace quipu

int main(int argc, char** argv) {
  try {
    return quipu::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
