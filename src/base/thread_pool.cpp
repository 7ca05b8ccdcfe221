#include "base/thread_pool.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"

namespace quipu {
namespace {

constexpr int kSpins = 4000;  // about 40 microseconds
constexpr int kYields = 16;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool is_at_least(std::uint32_t value, std::uint32_t target) {
  return static_cast<std::int32_t>(value - target) >= 0;
}

}  // namespace

void Epoch::publish(std::uint32_t value) {
  value_.store(value, std::memory_order_release);
  value_.notify_all();
}

std::uint32_t Epoch::add(std::uint32_t amount) {
  const std::uint32_t before = value_.fetch_add(amount, std::memory_order_acq_rel);
  value_.notify_all();
  return before + amount;
}

bool Epoch::reached(std::uint32_t value) const {
  return is_at_least(value_.load(std::memory_order_acquire), value);
}

void Epoch::wait_for(std::uint32_t value) const {
  for (int i = 0; i < kSpins; ++i) {
    if (reached(value)) return;
    pause_briefly();
  }
  for (int i = 0; i < kYields; ++i) {
    if (reached(value)) return;
    std::this_thread::yield();
  }
  for (;;) {
    const std::uint32_t seen = value_.load(std::memory_order_acquire);
    if (is_at_least(seen, value)) return;
    value_.wait(seen, std::memory_order_acquire);
  }
}

WorkerPool::WorkerPool(unsigned n_threads) : finished_(n_threads) {
  QUIPU_CHECK(n_threads >= 1);
  workers_.reserve(n_threads - 1);
  try {
    for (unsigned thread = 1; thread < n_threads; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  } catch (const std::system_error& error) {
    const unsigned n_started = size();
    stop();
    fail(ErrorCode::out_of_memory, "cannot start thread {} of {}: {}", n_started, n_threads, error.what());
  } catch (...) {
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  stop();
}

void WorkerPool::stop() {
  stopping_ = true;
  started_.publish(++round_);
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::run(unsigned n_threads, FunctionRef<void(unsigned)> body) {
  const std::lock_guard lock(turn_);
  active_ = std::clamp(n_threads, 1u, size());
  if (active_ == 1) return body(0);
  body_ = &body;
  started_.publish(++round_);
  body(0);
  // Every worker answers, also the idle ones, so that none can still be reading this round's fields in the
  // next.
  for (unsigned thread = 1; thread < size(); ++thread) finished_[thread].wait_for(round_);
}

void WorkerPool::work(unsigned thread) {
  for (std::uint32_t round = 1;; ++round) {
    started_.wait_for(round);
    if (stopping_) return;
    if (thread < active_) (*body_)(thread);
    finished_[thread].publish(round);
  }
}

}  // namespace quipu
