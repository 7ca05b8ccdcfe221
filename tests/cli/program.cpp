#include "cli/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace quipu::test {

namespace {

constexpr auto kPatience = std::chrono::seconds(60);

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
};

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

[[noreturn]] void become_program(const std::vector<std::string>& arguments, int in, int out, int err) {
  ::dup2(in, STDIN_FILENO);
  if (out < 0) {
    ::close(STDOUT_FILENO);
  } else {
    ::dup2(out, STDOUT_FILENO);
  }
  ::dup2(err, STDERR_FILENO);
  std::vector<char*> argv;
  std::string name = QUIPU_PROGRAM;
  argv.push_back(name.data());
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(QUIPU_PROGRAM, argv.data());
  ::_exit(127);
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments) : Program(arguments, Options()) {}

Program::Program(const std::vector<std::string>& arguments, const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);
  const Pipe in, out, err;
  const int full = options.output == Output::full ? ::open("/dev/full", O_WRONLY | O_CLOEXEC) : -1;
  process_ = ::fork();
  if (process_ == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    const int target = options.output == Output::captured ? out.write_end : full;
    become_program(arguments, in.read_end, target, err.write_end);
  }
  if (process_ < 0) throw std::runtime_error("fork");
  if (full >= 0) ::close(full);
  ::close(in.read_end);
  ::close(out.write_end);
  ::close(err.write_end);
  in_ = in.write_end;
  out_ = out.read_end;
  err_ = err.read_end;
  // What tests feed fits a pipe's buffer or is read at once.
  for (std::string_view rest = options.in; !rest.empty();) {
    const ssize_t n = ::write(in_, rest.data(), rest.size());
    if (n <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (!options.keep_input_open) close_if_open(in_);
}

Program::~Program() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  close_if_open(in_);
  close_if_open(out_);
  close_if_open(err_);
}

/// False once both streams have ended.
bool Program::read_some(std::chrono::milliseconds patience) {
  std::array<pollfd, 2> waiting = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  ::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()));
  std::array<char, 65536> buffer;
  const auto drain = [&](const pollfd& from, int& descriptor, std::string& target) {
    if (descriptor < 0 || (from.revents & (POLLIN | POLLHUP)) == 0) return;
    const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
    if (n > 0) target.append(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0) close_if_open(descriptor);
  };
  drain(waiting[0], out_, result_.out);
  drain(waiting[1], err_, result_.err);
  return true;
}

void Program::wait_for_output() {
  const auto end = Clock::now() + kPatience;
  while (result_.out.empty() && Clock::now() < end && read_some(std::chrono::milliseconds(100))) {
  }
}

void Program::stop_reading() {
  close_if_open(out_);
}

Result Program::wait() {
  const auto end = Clock::now() + kPatience;
  while (Clock::now() < end && read_some(std::chrono::milliseconds(100))) {
  }
  if (Clock::now() >= end) ::kill(process_, SIGKILL);
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  result_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

Result run(const std::vector<std::string>& arguments, const std::string& in) {
  Program::Options options;
  options.in = in;
  return Program(arguments, options).wait();
}

}  // namespace quipu::test
