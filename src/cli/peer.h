// Another engine's speed, as a command of the user's measures it.
#pragma once

#include <optional>
#include <string>

namespace quipu::cli {

/// One combination of what `quipu bench` measures.
struct Configuration {
  int n_prompt = 0;
  int n_generate = 0;
  int depth = 0;
  int threads = 0;
};

struct PeerFigures {
  std::optional<double> prompt_tps, generation_tps;  ///< tokens per second
};

/// Runs `command` in a shell, with {model}, {prompt}, {gen}, {depth} and {threads} replaced, and takes the
/// figures from the last line of its output that is a JSON object: "prompt_tps" or "pp" and the number of
/// tokens, "generation_tps" or "tg" and the number of tokens. Error if the command fails or prints no such
/// line.
PeerFigures run_peer(const std::string& command, const std::string& model,
                     const Configuration& configuration);

}  // namespace quipu::cli
