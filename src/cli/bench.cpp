// quipu bench: how fast a model reads a prompt and generates, over every combination of the figures given.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "quipu/context.h"
#include "quipu/cpu.h"
#include "quipu/error.h"
#include "quipu/version.h"

namespace quipu::cli {

namespace {

struct BenchOptions {
  std::string model;
  std::vector<int> n_prompt = {512};
  std::vector<int> n_generate = {32};
  std::vector<int> depth = {0};
  std::vector<int> threads;
  int repeats = 5;
  bool json = false;
};

struct Configuration {
  int n_prompt = 0;
  int n_generate = 0;
  int depth = 0;
  int threads = 0;
};

struct Figures {
  std::vector<double> prompt_tps;  // one for each repeat; empty if n_prompt is 0
  std::vector<double> generation_tps;
  std::uint64_t peak_memory = 0;
};

struct Interrupted {};

constexpr std::size_t kChunk = 512;  // tokens fed at once

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Feeds pseudo-random tokens: what a step costs does not depend on what they mean, and models without a
/// vocabulary have tokens as well.
class Feeder {
 public:
  explicit Feeder(Context& context) : context_(context), n_vocab_(context.model().n_vocab()) {}

  void clear() {
    context_.clear();
    position_ = 0;
  }

  /// In chunks, with logits of each chunk's last token; returns the tokens per second.
  double feed(int n_tokens, std::size_t chunk) {
    const auto start = std::chrono::steady_clock::now();
    for (auto left = static_cast<std::size_t>(n_tokens); left > 0;) {
      const std::size_t n = std::min(chunk, left);
      decode(n);
      left -= n;
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return n_tokens / std::max(elapsed.count(), 1e-9);
  }

 private:
  void decode(std::size_t n_tokens) {
    if (interrupted()) throw Interrupted();
    batch_.clear();
    tokens_.clear();
    for (std::size_t i = 0; i < n_tokens; ++i) tokens_.push_back(next_token());
    batch_.append(tokens_, position_);
    position_ += static_cast<Position>(n_tokens);
    switch (context_.decode(batch_)) {
      case DecodeResult::ok: break;
      case DecodeResult::aborted: throw Interrupted();
      case DecodeResult::no_room: throw Error(ErrorCode::invalid_argument, "bench: the context has no room");
    }
    static_cast<void>(context_.logits(-1));  // waits until they are there
  }

  Token next_token() {
    state_ = state_ * 1664525u + 1013904223u;  // Numerical Recipes' linear congruential generator
    return static_cast<Token>((state_ >> 8) % n_vocab_);
  }

  Context& context_;
  std::uint32_t n_vocab_;
  std::uint32_t state_ = 12345;
  Position position_ = 0;
  Batch batch_;
  std::vector<Token> tokens_;
};

Figures measure(const Model& model, const Configuration& configuration, int repeats, Progress& progress) {
  reset_peak_memory();
  ContextOptions options;
  const auto needed = static_cast<std::uint32_t>(configuration.depth + configuration.n_prompt +
                                                 configuration.n_generate + 64);
  options.n_ctx = (needed + 255) / 256 * 256;  // what the context would make of it, without its warning
  options.n_batch = 2048;
  options.n_ubatch = kChunk;
  options.n_threads = options.n_threads_batch = configuration.threads;
  options.abort = [] { return interrupted(); };
  Context context(model, options);
  Feeder feeder(context);
  Figures figures;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    progress.show(fmt::format("p {} n {} d {} t {}: repeat {} of {}", configuration.n_prompt,
                              configuration.n_generate, configuration.depth, configuration.threads, repeat,
                              repeats));
    feeder.clear();
    if (configuration.depth > 0) feeder.feed(configuration.depth, kChunk);
    const double prompt_tps = configuration.n_prompt > 0 ? feeder.feed(configuration.n_prompt, kChunk) : 0;
    const double generation_tps = configuration.n_generate > 0 ? feeder.feed(configuration.n_generate, 1) : 0;
    if (repeat == 0) continue;  // the first only warms up
    if (configuration.n_prompt > 0) figures.prompt_tps.push_back(prompt_tps);
    if (configuration.n_generate > 0) figures.generation_tps.push_back(generation_tps);
  }
  figures.peak_memory = peak_memory();
  return figures;
}

void add_figures(Json& result, const std::string& name, const std::vector<double>& values) {
  const bool any = !values.empty();
  result[name] = any ? Json(median(values)) : Json(nullptr);
  result[name + "_min"] = any ? Json(*std::min_element(values.begin(), values.end())) : Json(nullptr);
  result[name + "_max"] = any ? Json(*std::max_element(values.begin(), values.end())) : Json(nullptr);
  result[name + "_all"] = values;
}

Json to_json(const Model& model, double load_ms, const Configuration& configuration, int repeats,
             const Figures& figures) {
  Json result;
  result["engine"] = fmt::format("quipu {}", version());
  result["kernels"] = cpu_kernels();
  result["model"] = model.name();
  result["architecture"] = model.architecture();
  result["model_bytes"] = model.bytes();
  result["n_params"] = model.n_params();
  result["load_ms"] = load_ms;
  result["n_prompt"] = configuration.n_prompt;
  result["n_gen"] = configuration.n_generate;
  result["depth"] = configuration.depth;
  result["threads"] = configuration.threads;
  result["repeats"] = repeats;
  add_figures(result, "prompt_tps", figures.prompt_tps);
  add_figures(result, "generation_tps", figures.generation_tps);
  result["peak_memory_bytes"] = figures.peak_memory;
  return result;
}

std::string cell(const std::vector<double>& values) {
  if (values.empty()) return "-";
  return fmt::format("{:.1f} ({:.1f} - {:.1f})", median(values),
                     *std::min_element(values.begin(), values.end()),
                     *std::max_element(values.begin(), values.end()));
}

std::vector<Configuration> configurations(const BenchOptions& options) {
  const std::vector<int> threads =
      options.threads.empty() ? std::vector{available_threads()} : options.threads;
  std::vector<Configuration> result;
  for (const int t : threads) {
    for (const int d : options.depth) {
      for (const int p : options.n_prompt) {
        for (const int n : options.n_generate) {
          if (p + n > 0) result.push_back({p, n, d, t});
        }
      }
    }
  }
  if (result.empty()) throw UsageError("bench: -p and -n are both 0");
  return result;
}

int bench(const BenchOptions& options) {
  const std::vector<Configuration> wanted = configurations(options);
  const auto [model, load_ms] = load_model(options.model);
  Json results = Json::array();
  Table table(
      {"PROMPT", "GENERATE", "DEPTH", "THREADS", "PROMPT TOKENS/S", "GENERATED TOKENS/S", "PEAK MEMORY"});
  for (std::size_t column = 0; column < 7; ++column) table.align_right(column);
  bool stopped = false;
  try {
    Progress progress;
    for (const Configuration& configuration : wanted) {
      const Figures figures = measure(model, configuration, options.repeats, progress);
      results.push_back(to_json(model, load_ms, configuration, options.repeats, figures));
      table.add({fmt::format("{}", configuration.n_prompt), fmt::format("{}", configuration.n_generate),
                 fmt::format("{}", configuration.depth), fmt::format("{}", configuration.threads),
                 cell(figures.prompt_tps), cell(figures.generation_tps), human_bytes(figures.peak_memory)});
    }
  } catch (const Interrupted&) {
    stopped = true;
  }
  if (options.json) {
    write_output(dump(results) + "\n");
  } else {
    write_output(fmt::format(
        "{}: {}, {} parameters, {}, loaded in {:.0f} ms; {} kernels; median of {} (lowest - highest)\n{}",
        printable(model.name()), printable(model.architecture()), human_count(model.n_params()),
        human_bytes(model.bytes()), load_ms, cpu_kernels(), options.repeats, table.text()));
  }
  return stopped ? interrupt_exit_code() : static_cast<int>(kOk);
}

}  // namespace

void add_bench(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("bench", "Measure how fast a model runs");
  command->footer(
      R"(For every combination of the lists: memory is emptied and filled with DEPTH tokens, then a prompt is read (in chunks of
up to 512 tokens) and tokens are generated one by one, both timed. One round warms up and is not counted. Tokens are
pseudo-random, so models without a vocabulary work as well. Ctrl-C prints what is finished.

--json prints an array with one object for each combination: prompt_tps and generation_tps are medians in tokens per
second, with _min, _max and _all beside them (null where the number of tokens is 0); load_ms, peak_memory_bytes,
model_bytes, n_params, kernels (see QUIPU_CPU), n_prompt, n_gen, depth, threads, repeats.

Examples:
  quipu bench model.gguf
  quipu bench model.gguf -p 512 -n 32 -d 0,2048 -t 1,2 -r 3 --json)");
  const auto options = std::make_shared<BenchOptions>();
  const auto add_list = [command](const std::string& name, std::vector<int>& target,
                                  const std::string& description, int least, int most) {
    return command->add_option(name, target, description)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("LIST")
        ->check(CLI::Range(least, most).description(""));
  };
  constexpr int kMostTokens = 1 << 24;
  command->add_option("MODEL", options->model, "GGUF file; the built-in model if absent")->type_name("FILE");
  add_list("-p,--n-prompt", options->n_prompt, "Tokens of prompt", 0, kMostTokens)->default_str("512");
  add_list("-n,--n-gen", options->n_generate, "Tokens to generate", 0, kMostTokens)->default_str("32");
  add_list("-d,--depth", options->depth, "Tokens already in memory", 0, kMostTokens)->default_str("0");
  add_list("-t,--threads", options->threads, "Threads; as many as there are processors if absent", 1, 1024);
  command->add_option("-r,--repeats", options->repeats, "Rounds that count")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str();
  command->add_flag("--json", options->json, "A JSON array with one object for each combination");
  command->callback([options, &exit_code] { exit_code = bench(*options); });
}

}  // namespace quipu::cli
