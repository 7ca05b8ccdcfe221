#include "cli/interrupt.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace quipu::cli {

namespace {

volatile std::sig_atomic_t caught_signal = 0;

extern "C" void note_signal(int number) {
  caught_signal = number;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: reading from a terminal gives up. SA_RESETHAND: the second signal has its usual effect.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void catch_interrupts_again() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

void forget_interrupt() noexcept {
  if (caught_signal == SIGINT) caught_signal = 0;
}

bool interrupted() noexcept {
  return caught_signal != 0;
}
bool wait_for_input() noexcept {
  // The signal may come just before the wait, or to a thread of the model: looking now and then misses
  // neither.
  constexpr int kMilliseconds = 100;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (!interrupted()) {
    if (::poll(&input, 1, kMilliseconds) > 0) return true;
  }
  return false;
}

int interrupt_exit_code() noexcept {
  return 128 + static_cast<int>(caught_signal);
}

}  // namespace quipu::cli
