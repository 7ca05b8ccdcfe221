#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace quipu {
namespace {

std::atomic<LogLevel> least_level{LogLevel::warning};

struct SinkSlot {
  std::mutex mutex;
  LogSink sink;
};

SinkSlot& sink_slot() {
  static SinkSlot slot;
  return slot;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

void write_to_stderr(LogLevel level, std::string_view text) {
  static const auto logger = [] {
    auto created =
        std::make_shared<spdlog::logger>("quipu", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    created->set_level(spdlog::level::trace);
    created->set_pattern("%^%l%$: %v");
    return created;
  }();
  logger->log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace

void set_log_sink(LogSink sink) {
  SinkSlot& slot = sink_slot();
  const std::lock_guard lock(slot.mutex);
  slot.sink = std::move(sink);
}

void set_log_level(LogLevel level) noexcept {
  least_level.store(level, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) noexcept {
  return level >= least_level.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view text) noexcept {
  try {
    SinkSlot& slot = sink_slot();
    const std::lock_guard lock(slot.mutex);
    if (slot.sink) {
      slot.sink(level, text);
    } else {
      write_to_stderr(level, text);
    }
  } catch (...) {
    // A log line that cannot be written is lost; the work that logged it goes on.
  }
}

}  // namespace quipu
