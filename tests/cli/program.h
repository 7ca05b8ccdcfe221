// Runs the real program as a user would: arguments and standard streams in, output and exit code back.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace quipu::test {

struct Result {
  int exit_code = -1;  ///< 128 + signal if a signal ended it, as a shell reports it
  std::string out;
  std::string err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// A running `quipu`. Whatever has not ended after 60 seconds is killed, and wait() says so by exit code 137.
class Program {
 public:
  enum class Output { captured, closed, full };  ///< full: /dev/full, on which every write fails
  struct Options {
    std::string in;                ///< standard input; ends after it
    bool keep_input_open = false;  ///< no end of file until wait() is over
    Output output = Output::captured;
  };
  explicit Program(const std::vector<std::string>& arguments);
  Program(const std::vector<std::string>& arguments, const Options& options);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits until at least one byte of output came.
  void wait_for_output();
  void signal(int number) const { ::kill(process_, number); }
  /// Closes our end of its output.
  void stop_reading();
  Result wait();

 private:
  using Clock = std::chrono::steady_clock;
  bool read_some(std::chrono::milliseconds patience);

  pid_t process_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  Result result_;
};

/// Runs it to its end.
Result run(const std::vector<std::string>& arguments, const std::string& in = "");

}  // namespace quipu::test
