// The options of the command line that say how tokens are chosen, for every command that generates text.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cli/json.h"
#include "quipu/sampler.h"

namespace quipu::cli {

class SamplingArguments {
 public:
  /// Adds the options to a command; must outlive its parsing.
  void add_to(CLI::App& command);
  /// What the command line asks for, in place of what `options` say.
  void apply_to(SamplingOptions& options) const;

 private:
  template <typename T>
  CLI::Option* add(CLI::App& command, const char* name, T SamplingOptions::*member, const char* help);
  void add_lists(CLI::App& command);

  std::vector<std::function<void(SamplingOptions&)>> changes_;
};

/// The settings as --json shows them; `seed` is the one that is used.
Json settings_json(const SamplingOptions& options, std::uint64_t seed);

}  // namespace quipu::cli
