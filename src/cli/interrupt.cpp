#include "cli/interrupt.h"

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

bool interrupted() noexcept {
  return caught_signal != 0;
}
int interrupt_exit_code() noexcept {
  return 128 + static_cast<int>(caught_signal);
}

}  // namespace quipu::cli
