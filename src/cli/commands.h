// The subcommands. Each adds itself to the program with its options; its callback runs when it was chosen and
// returns through the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>

namespace quipu::cli {

/// A command line that parses but makes no sense: ends the program with kUsage.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void add_architectures(CLI::App& program, int& exit_code);
void add_run(CLI::App& program, int& exit_code);
void add_chat(CLI::App& program, int& exit_code);
void add_inspect(CLI::App& program, int& exit_code);
void add_tokenize(CLI::App& program, int& exit_code);
void add_bench(CLI::App& program, int& exit_code);

}  // namespace quipu::cli
