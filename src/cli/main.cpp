// The program `quipu`: which subcommand runs, and how everything that goes wrong ends. No subcommand's own
// logic.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <sstream>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "quipu/quipu.h"

namespace quipu::cli {

namespace {

constexpr const char* kFooter = R"(Examples:
  quipu run "Once upon a time"                 the built-in model, no file needed
  quipu chat -m model.gguf                     a conversation
  quipu run -m model.gguf -n 100 --temp 0 "The capital of Peru is"
  echo -n "Dear diary," | quipu run -m model.gguf --json
  quipu inspect model.gguf
  quipu bench model.gguf -p 512 -n 32 --json

Exit codes:
  0    done
  1    failed: one line on standard error says what and where
  2    the command line makes no sense
  130  stopped by Ctrl-C (143: by a request to terminate)
  141  the reader of standard output went away

Environment:
  QUIPU_CPU  the kernels to compute with, in place of the best that the processor can run: avx512, avx512-vnni,
             avx2-vnni, avx2 or scalar (results are the same)

`quipu COMMAND --help` explains a command.)";

void configure(CLI::App& program, int& exit_code) {
  program.description("Runs language models from GGUF files on this machine.");
  program.footer(kFooter);
  program.set_version_flag("--version", fmt::format("quipu {}", version()), "Print the version and exit");
  program.get_help_ptr()->description("Print this help and exit");
  program.add_flag_callback(
      "-v,--verbose", [] { set_log_level(LogLevel::info); }, "Log what is going on to standard error");
  program.require_subcommand(1);
  add_run(program, exit_code);
  add_chat(program, exit_code);
  add_inspect(program, exit_code);
  add_tokenize(program, exit_code);
  add_bench(program, exit_code);
  add_architectures(program, exit_code);
}

/// Help and version go to standard output, complaints to standard error.
int end_of_parsing(const CLI::App& program, const CLI::ParseError& error) {
  std::ostringstream out, complaint;
  const int code = program.exit(error, out, complaint);
  write_output(out.str());
  if (code == 0) return kOk;
  write_diagnostic(fmt::format("quipu: {}", complaint.str()));
  return kUsage;
}

int run_program(int argc, const char* const* argv) {
  CLI::App program{"", "quipu"};
  int exit_code = kOk;
  try {
    configure(program, exit_code);
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return end_of_parsing(program, error);
  } catch (const UsageError& error) {
    write_diagnostic(fmt::format("quipu: {}\nRun with --help for more information.\n", error.what()));
    return kUsage;
  }
  return exit_code;
}

}  // namespace

}  // namespace quipu::cli

int main(int argc, char** argv) {
  using namespace quipu::cli;
  try {
    prepare_standard_streams();
    catch_interrupts();
    return run_program(argc, argv);
  } catch (const OutputClosed&) {
    return kOutputClosed;
  } catch (const std::exception& error) {
    if (interrupted()) return interrupt_exit_code();
    write_diagnostic(std::string("quipu: ") + error.what() + "\n");
    return kFailed;
  }
}
