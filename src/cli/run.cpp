// quipu run: continues a text. Options and results here; the generation itself is generate.h.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/generate.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/sampling_arguments.h"

namespace quipu::cli {

namespace {

struct RunOptions {
  std::string model;
  std::optional<std::string> prompt;
  int n_predict = -1;
  SamplingArguments sampling;
  int threads = 0;
  std::uint32_t n_ctx = 0;
  bool ignore_end = false;
  bool echo = false;
  bool json = false;
};

/// Tokens per second, 0 where no time passed.
double rate(std::size_t n_tokens, double milliseconds) {
  return milliseconds > 0 ? static_cast<double>(n_tokens) * 1000 / milliseconds : 0.0;
}

std::string counters_line(const Generation& generation, double load_ms) {
  return fmt::format(
      "load {:.0f} ms; prompt {} tokens, {:.0f} ms, {:.1f} tokens/s; generated {} tokens, {:.0f} ms, {:.1f} "
      "tokens/s\n",
      load_ms, generation.n_prompt_done, generation.prompt_ms,
      rate(generation.n_prompt_done, generation.prompt_ms), generation.tokens.size(),
      generation.generation_ms, rate(generation.tokens.size(), generation.generation_ms));
}

Json pieces_json(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
  Json pieces = Json::array();
  for (const Token token : tokens) pieces.push_back(tokenizer.piece(token, true));
  return pieces;
}

Json timings_json(const Generation& generation, double load_ms) {
  return {{"load_ms", load_ms},
          {"prompt_tokens", generation.n_prompt_done},
          {"prompt_ms", generation.prompt_ms},
          {"prompt_tps", rate(generation.n_prompt_done, generation.prompt_ms)},
          {"generation_tokens", generation.tokens.size()},
          {"generation_ms", generation.generation_ms},
          {"generation_tps", rate(generation.tokens.size(), generation.generation_ms)}};
}

/// Writes text as it comes and, at the end, the line break that it may lack.
class Stream {
 public:
  void write(const std::string& text) {
    if (text.empty()) return;
    write_output(text);
    ends_line_ = text.back() == '\n';
  }
  void finish() {
    if (!ends_line_) write_output("\n");
  }

 private:
  bool ends_line_ = false;
};

int run(const RunOptions& options) {
  const std::string prompt = text_argument(options.prompt, "PROMPT");
  if (interrupted()) return interrupt_exit_code();
  const auto [model, load_ms] = load_model(options.model);
  const Tokenizer tokenizer = model.tokenizer();
  const std::vector<Token> prompt_tokens = tokenizer.tokenize(prompt);

  ContextOptions context_options;
  context_options.n_ctx = context_length(model, options.n_ctx, prompt_tokens.size(), options.n_predict);
  context_options.n_threads = context_options.n_threads_batch = options.threads;
  context_options.abort = [] { return interrupted(); };
  Context context(model, context_options);
  SamplingOptions sampling = model.recommended_sampling();
  options.sampling.apply_to(sampling);
  Sampler sampler(sampling, tokenizer);

  Stream stream;
  std::string text = options.echo ? prompt : "";
  if (options.echo && !options.json) stream.write(prompt);
  Progress progress;
  const auto on_text = [&](const std::string& piece) {
    if (options.json) {
      text += piece;
      progress.show(fmt::format("generating: {} bytes of text", text.size()));
    } else {
      stream.write(piece);
    }
  };
  const Generation generation =
      generate(context, sampler, prompt_tokens,
               {.max_tokens = options.n_predict, .ignore_end = options.ignore_end}, on_text);
  progress.clear();
  if (options.json) {
    Json result;
    result["model"] = model.name();
    result["architecture"] = model.architecture();
    result["settings"] = settings_json(sampling, sampler.seed().value_or(0));
    result["n_ctx"] = context.n_ctx();
    result["prompt_tokens"] = prompt_tokens;
    result["tokens"] = generation.tokens;
    result["pieces"] = pieces_json(tokenizer, generation.tokens);
    result["text"] = text;
    result["stop"] = to_string(generation.stop);
    result["timings"] = timings_json(generation, load_ms);
    write_output(dump(result) + "\n");
  } else {
    stream.finish();
  }
  const bool stopped = generation.stop == StopReason::interrupted;
  if (stopped || diagnostics_are_on_terminal()) write_diagnostic(counters_line(generation, load_ms));
  return stopped ? interrupt_exit_code() : static_cast<int>(kOk);
}

}  // namespace

void add_run(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("run", "Continue a text");
  command->footer(
      R"(The text is continued as it stands, without a chat template; special tokens written out in it ("<|im_end|>") count
as such. Output streams as it comes and ends with a line break. Sampling settings come from the options, else from the
model file (general.sampling.*), else they are temp 0.8, top-k 40, top-p 0.95, min-p 0.05. The same seed, prompt and
settings give the same text, whatever the number of threads. Ctrl-C stops and prints the counters to standard error; so
does the end, if that is a terminal. A prompt that begins with a dash goes behind `--`.

--json prints one object instead of text: settings (with the seed that was used), prompt_tokens, tokens, pieces, text,
stop (end: the model ended the text; length: -n reached; context: memory full; interrupted) and timings.

Examples:
  quipu run "Once upon a time"
  quipu run -m model.gguf -n 64 --temp 0 "The capital of Peru is"
  quipu run -m model.gguf --seed 7 --json - < prompt.txt | jq -r .text)");
  const auto options = std::make_shared<RunOptions>();
  command->add_option("PROMPT", options->prompt,
                      "Text to continue; all of standard input, byte for byte, if `-`, or absent in a pipe");
  command->add_option("-m,--model", options->model, "GGUF file; the built-in model if absent")
      ->type_name("FILE");
  command
      ->add_option("-n,--n-predict", options->n_predict,
                   "Most tokens to generate; negative: until the model ends the text or its context is full")
      ->capture_default_str();
  options->sampling.add_to(*command);
  command->add_option("-t,--threads", options->threads, "Threads; as many as there are processors if absent")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  command
      ->add_option("-c,--ctx", options->n_ctx,
                   "Tokens of context; if absent what the model was trained for, at most 4096 or what the "
                   "prompt needs")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 30).description(""));
  command->add_flag("--ignore-end", options->ignore_end, "Go on where the model would end the text");
  command->add_flag("--echo", options->echo, "Print the prompt before its continuation");
  command->add_flag("--json", options->json, "One JSON object instead of text: tokens and timings");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace quipu::cli
