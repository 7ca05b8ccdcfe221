#include "cli/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "quipu/chat.h"
#include "quipu/error.h"
#include "quipu/tokenizer.h"

namespace quipu::cli {

namespace {

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void check_prompt(const Context& context, std::size_t n_tokens) {
  if (n_tokens == 0) {
    throw Error(ErrorCode::invalid_argument,
                "the prompt is empty, and the model needs at least one token to continue");
  }
  if (n_tokens > context.n_ctx_per_sequence()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the prompt has {} tokens, the context holds {} (see --ctx)", n_tokens,
                            context.n_ctx_per_sequence()));
  }
}

/// Computes the prompt, in batches. False if interrupted.
bool feed(Context& context, std::span<const Token> prompt, std::size_t& n_done) {
  Progress progress;
  while (n_done < prompt.size()) {
    const std::size_t n = std::min<std::size_t>(context.n_batch(), prompt.size() - n_done);
    if (interrupted()) return false;
    switch (context.decode(Batch::text(prompt.subspan(n_done, n), static_cast<Position>(n_done)))) {
      case DecodeResult::ok: break;
      case DecodeResult::aborted: return false;
      case DecodeResult::no_room:
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("the context has no room for token {} of the prompt (see --ctx)", n_done + 1));
    }
    n_done += n;
    progress.show("reading", static_cast<double>(n_done) / static_cast<double>(prompt.size()));
  }
  return true;
}

/// Samples and computes one token after the other until something ends it, or `on_token` says so.
StopReason continue_text(Context& context, Sampler& sampler, Position position,
                         const GenerateOptions& options, std::vector<Token>& tokens,
                         const std::function<bool(Token)>& on_token) {
  const Tokenizer tokenizer = context.model().tokenizer();
  while (options.max_tokens < 0 || tokens.size() < static_cast<std::size_t>(options.max_tokens)) {
    if (interrupted()) return StopReason::interrupted;
    const Token token = sampler.sample(context.logits(-1));
    sampler.accept(token);
    tokens.push_back(token);
    if (!options.ignore_end && tokenizer.ends_generation(token)) return StopReason::end;
    if (!on_token(token)) return StopReason::stop;
    const bool last =
        options.max_tokens >= 0 && tokens.size() == static_cast<std::size_t>(options.max_tokens);
    if (last) break;
    if (static_cast<std::uint32_t>(position) >= context.n_ctx_per_sequence()) return StopReason::context;
    switch (context.decode(Batch::text(std::span(&token, 1), position++))) {
      case DecodeResult::ok: break;
      case DecodeResult::no_room: return StopReason::context;
      case DecodeResult::aborted: return StopReason::interrupted;
    }
  }
  return StopReason::length;
}

}  // namespace

std::uint32_t context_length(const Model& model, std::uint32_t n_ctx, std::size_t n_prompt, int max_tokens) {
  constexpr std::uint64_t kUsual = 4096;  // memory is taken for all of them
  if (n_ctx > 0) return n_ctx;
  const std::uint64_t n_generated = max_tokens >= 0 ? static_cast<std::uint64_t>(max_tokens) : 512;
  const std::uint64_t trained = model.n_ctx_train() > 0 ? model.n_ctx_train() : kUsual;
  const std::uint64_t length = std::min(trained, std::max<std::uint64_t>(n_prompt + n_generated, kUsual));
  return static_cast<std::uint32_t>((length + 255) / 256 *
                                    256);  // what a context makes of it, without its warning
}

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::end: return "end";
    case StopReason::stop: return "stop";
    case StopReason::length: return "length";
    case StopReason::context: return "context";
    case StopReason::interrupted: return "interrupted";
  }
  return "";
}

Generation generate(Context& context, Sampler& sampler, std::span<const Token> prompt,
                    const GenerateOptions& options, const std::function<void(const std::string&)>& on_text) {
  check_prompt(context, prompt.size());
  Generation result;
  result.n_prompt_done = options.n_kept;
  const Stopwatch prompt_watch;
  const bool fed = feed(context, prompt, result.n_prompt_done);
  result.prompt_ms = prompt_watch.milliseconds();
  if (!fed) {
    result.stop = StopReason::interrupted;
    return result;
  }
  for (const Token token : prompt) sampler.accept(token);
  TextStream text(context.model().tokenizer());
  StopTexts stops(options.stops);
  const Stopwatch generation_watch;
  result.stop = continue_text(context, sampler, static_cast<Position>(prompt.size()), options, result.tokens,
                              [&](Token token) {
                                on_text(stops.add(text.add(token)));
                                return !stops.found();
                              });
  result.generation_ms = generation_watch.milliseconds();
  on_text(stops.add(text.finish()));
  on_text(stops.finish());
  return result;
}

}  // namespace quipu::cli
