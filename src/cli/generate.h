// The generation of one text: prompt in, tokens out, until something ends it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "quipu/context.h"
#include "quipu/sampler.h"

namespace quipu::cli {

enum class StopReason {
  end,          ///< the model ended the text
  stop,         ///< a stop text came
  length,       ///< as many tokens as were asked for
  context,      ///< no room for another token
  interrupted,  ///< Ctrl-C
};
const char* to_string(StopReason reason);

struct GenerateOptions {
  int max_tokens = -1;                  ///< negative: no limit
  bool ignore_end = false;              ///< tokens that end a text don't
  std::vector<std::string> stops = {};  ///< texts that end it, which are not given out
  std::size_t n_kept = 0;  ///< of the prompt's tokens the context holds so many already, and nothing else
};

/// Tokens of context where `n_ctx` is 0: what the model was trained for, at most 4096 or what prompt and
/// generated tokens need. `max_tokens` as above.
std::uint32_t context_length(const Model& model, std::uint32_t n_ctx, std::size_t n_prompt, int max_tokens);

struct Generation {
  std::vector<Token> tokens;  ///< with the one that ended the text, if one did
  StopReason stop = StopReason::length;
  std::size_t n_prompt_done = 0;
  double prompt_ms = 0;
  double generation_ms = 0;
};

/// Continues `prompt` in sequence 0 of a context that holds its first n_kept tokens; `on_text` receives text
/// as it becomes whole characters. Error(invalid_argument) for a prompt that is empty or longer than the
/// context. The time of the first token belongs to the prompt, which computes its logits.
Generation generate(Context& context, Sampler& sampler, std::span<const Token> prompt,
                    const GenerateOptions& options, const std::function<void(const std::string&)>& on_text);

}  // namespace quipu::cli
