#include "cli/progress.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace quipu::cli {

namespace {

constexpr auto kFirstAfter = std::chrono::milliseconds(300);
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

Progress::Progress() : on_terminal_(diagnostics_are_on_terminal()), next_(Clock::now() + kFirstAfter) {}

void Progress::clear() {
  if (shown_) write_diagnostic(kEraseLine);
  shown_ = false;
}

void Progress::show(std::string_view text) {
  if (!on_terminal_ || Clock::now() < next_) return;
  write_diagnostic(fmt::format("{}{}", kEraseLine, text));
  shown_ = true;
  next_ = Clock::now() + kInterval;
}

void Progress::show(std::string_view what, double fraction) {
  show(fmt::format("{} {:.0f} %", what, 100 * fraction));
}

}  // namespace quipu::cli
