// Ctrl-C and the request to terminate: the first asks the program to stop cleanly, a second one ends it at
// once.
#pragma once

namespace quipu::cli {

/// From here on SIGINT and SIGTERM are noted; system calls that wait return.
void catch_interrupts();

/// Whether one came.
bool interrupted() noexcept;
/// kInterrupted or kTerminated, by which came; only after interrupted().
int interrupt_exit_code() noexcept;

}  // namespace quipu::cli
