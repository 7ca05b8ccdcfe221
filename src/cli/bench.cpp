// quipu bench: how fast a model reads a prompt and generates, over every combination of the figures given.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/peer.h"
#include "cli/progress.h"
#include "quipu/context.h"
#include "quipu/cpu.h"
#include "quipu/error.h"
#include "quipu/version.h"

namespace quipu::cli {

namespace {

struct BenchOptions {
  std::vector<std::string> models;
  std::vector<int> n_prompt = {512};
  std::vector<int> n_generate = {32};
  std::vector<int> depth = {0};
  std::vector<int> threads;
  int repeats = 5;
  std::string peer;  // command that measures another engine; empty: there is none
  ReportFormat format = ReportFormat::table;
};

struct Figures {
  std::vector<double> prompt_tps;  // one for each repeat; empty if n_prompt is 0
  std::vector<double> generation_tps;
  std::vector<double> peer_prompt_tps;  // as far as there is a peer, and it says so
  std::vector<double> peer_generation_tps;
  std::uint64_t peak_memory = 0;
};

struct Interrupted {};

constexpr std::size_t kChunk = 512;  // tokens fed at once

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

/// Adds the figures of `repeats` rounds, which one more warms up for.
void measure(const Model& model, const Configuration& configuration, int repeats, Progress& progress,
             Figures& figures) {
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
  figures.peak_memory = std::max(figures.peak_memory, peak_memory());
}

/// We and the peer in turns, so that what else the machine does hits both.
void compare(const Model& model, const std::string& file, const Configuration& configuration,
             const BenchOptions& options, Progress& progress, Figures& figures) {
  for (int turn = 0; turn < options.repeats; ++turn) {
    measure(model, configuration, 1, progress, figures);
    progress.show(fmt::format("peer: turn {} of {}", turn + 1, options.repeats));
    const PeerFigures peer = run_peer(options.peer, file, configuration);
    if (interrupted()) throw Interrupted();
    if (peer.prompt_tps) figures.peer_prompt_tps.push_back(*peer.prompt_tps);
    if (peer.generation_tps) figures.peer_generation_tps.push_back(*peer.generation_tps);
  }
}

void add_figures(Json& result, const std::string& name, const std::vector<double>& values) {
  const bool any = !values.empty();
  result[name] = any ? Json(median(values)) : Json(nullptr);
  result[name + "_min"] = any ? Json(*std::min_element(values.begin(), values.end())) : Json(nullptr);
  result[name + "_max"] = any ? Json(*std::max_element(values.begin(), values.end())) : Json(nullptr);
  result[name + "_all"] = values;
}

/// The peer's figure is the median of the better half of its runs: how fast it is when it is left alone.
void add_peer(Json& result, const std::string& name, const std::vector<double>& values,
              const std::vector<double>& ours) {
  std::vector<double> better = values;
  std::sort(better.rbegin(), better.rend());
  better.resize((better.size() + 1) / 2);
  const bool any = !better.empty() && !ours.empty();
  result["peer_" + name + "_tps"] = any ? Json(median(better)) : Json(nullptr);
  result["peer_" + name + "_tps_all"] = values;
  result[name + "_ratio"] = any ? Json(median(ours) / median(better)) : Json(nullptr);
}

Json to_json(const Model& model, const std::string& file, double load_ms, const Configuration& configuration,
             const BenchOptions& options, const Figures& figures) {
  Json result;
  result["engine"] = fmt::format("quipu {}", version());
  result["kernels"] = cpu_kernels();
  result["file"] = file;
  result["model"] = model.name();
  result["architecture"] = model.architecture();
  result["model_bytes"] = model.bytes();
  result["n_params"] = model.n_params();
  result["load_ms"] = load_ms;
  result["n_prompt"] = configuration.n_prompt;
  result["n_gen"] = configuration.n_generate;
  result["depth"] = configuration.depth;
  result["threads"] = configuration.threads;
  result["repeats"] = options.repeats;
  add_figures(result, "prompt_tps", figures.prompt_tps);
  add_figures(result, "generation_tps", figures.generation_tps);
  if (!options.peer.empty()) {
    add_peer(result, "prompt", figures.peer_prompt_tps, figures.prompt_tps);
    add_peer(result, "generation", figures.peer_generation_tps, figures.generation_tps);
  }
  result["peak_memory_bytes"] = figures.peak_memory;
  return result;
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
  Json results = Json::array();
  bool stopped = false;
  try {
    for (const std::string& file : options.models) {
      const auto [model, load_ms] = load_model(file);
      Progress progress;
      for (const Configuration& configuration : wanted) {
        Figures figures;
        if (options.peer.empty()) {
          measure(model, configuration, options.repeats, progress, figures);
        } else {
          compare(model, file, configuration, options, progress, figures);
        }
        results.push_back(to_json(model, file, load_ms, configuration, options, figures));
      }
    }
  } catch (const Interrupted&) {
    stopped = true;
  }
  write_output(report(results, options.format));
  return stopped ? interrupt_exit_code() : static_cast<int>(kOk);
}

}  // namespace

void add_bench(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("bench", "Measure how fast a model runs");
  command->footer(
      R"(For every combination of the lists: memory is emptied and filled with DEPTH tokens, then a prompt is read (in chunks of
up to 512 tokens) and tokens are generated one by one, both timed. One round warms up and is not counted. Tokens are
pseudo-random, so models without a vocabulary work as well. Ctrl-C prints what is finished.

--compare runs COMMAND in a shell after each round of ours, with {model}, {prompt}, {gen}, {depth} and {threads} filled
in. The last line that it prints as a JSON object has its tokens per second, as "prompt_tps" or "pp512" and as
"generation_tps" or "tg32". Of its runs the median of the better half counts; RATIO is ours by its.

JSON is an array with one object for each model and combination: prompt_tps and generation_tps are medians in tokens per
second, with _min, _max and _all beside them (null where the number of tokens is 0); peer_prompt_tps,
peer_generation_tps, prompt_ratio and generation_ratio with --compare; load_ms, peak_memory_bytes, model_bytes,
n_params, kernels (see QUIPU_CPU), n_prompt, n_gen, depth, threads, repeats. CSV has the same columns but for the lists.

Examples:
  quipu bench model.gguf
  quipu bench a.gguf b.gguf -p 512 -n 32 -d 0,2048 -t 1,2 -r 3 --format markdown
  quipu bench model.gguf -r 6 --compare 'peer_bench {model} {prompt} {gen} {depth} {threads} 1')");
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
  command->add_option("MODEL", options->models, "GGUF files; the built-in model if absent")
      ->type_name("FILE");
  add_list("-p,--n-prompt", options->n_prompt, "Tokens of prompt", 0, kMostTokens)->default_str("512");
  add_list("-n,--n-gen", options->n_generate, "Tokens to generate", 0, kMostTokens)->default_str("32");
  add_list("-d,--depth", options->depth, "Tokens already in memory", 0, kMostTokens)->default_str("0");
  add_list("-t,--threads", options->threads, "Threads; as many as there are processors if absent", 1, 1024);
  command->add_option("-r,--repeats", options->repeats, "Rounds that count")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str();
  command->add_option("--compare", options->peer, "Command that measures another engine, run in turns")
      ->type_name("COMMAND");
  static const std::map<std::string, ReportFormat> formats = {{"table", ReportFormat::table},
                                                              {"markdown", ReportFormat::markdown},
                                                              {"csv", ReportFormat::csv},
                                                              {"json", ReportFormat::json}};
  command->add_option("--format", options->format, "table, markdown, csv or json")
      ->type_name("NAME")
      ->transform(CLI::CheckedTransformer(formats).description(""));
  command->add_flag_callback(
      "--json", [options] { options->format = ReportFormat::json; }, "The same as --format json");
  command->callback([options, &exit_code] {
    if (options->models.empty()) options->models.emplace_back();
    exit_code = bench(*options);
  });
}

}  // namespace quipu::cli
