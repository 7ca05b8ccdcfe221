// How the program ends. The numbers are documented in --help.
#pragma once

namespace quipu::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,          ///< a file, the model or the machine refused; one line on standard error says why
  kUsage = 2,           ///< the command line makes no sense
  kInterrupted = 130,   ///< Ctrl-C (128 + SIGINT)
  kOutputClosed = 141,  ///< the reader of standard output went away (128 + SIGPIPE)
  kTerminated = 143,    ///< 128 + SIGTERM
};

}  // namespace quipu::cli
