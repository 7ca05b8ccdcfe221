// Ctrl-C and the request to terminate: the first asks the program to stop cleanly, a second one ends it at
// once.
#pragma once

namespace quipu::cli {

/// From here on SIGINT and SIGTERM are noted; system calls that wait return.
void catch_interrupts();

/// The same for programs that go on: the first Ctrl-C is noted each time that it was forgotten.
void catch_interrupts_again();
/// A Ctrl-C that was noted is over; a request to terminate stays.
void forget_interrupt() noexcept;

/// Whether one came.
bool interrupted() noexcept;
/// kInterrupted or kTerminated, by which came; only after interrupted().
int interrupt_exit_code() noexcept;

/// Waits until standard input can be read; false if an interrupt came first, or was there already.
bool wait_for_input() noexcept;

}  // namespace quipu::cli
