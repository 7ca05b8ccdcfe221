// Persistent worker threads for compute, and the meeting point at which they wait for each other inside a
// run. Waiting spins briefly, then yields, then sleeps: fast when every thread has a core, harmless when it
// has not.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace quipu {

/// A reference to a callable that outlives the call; no allocation.
template <typename Signature>
class FunctionRef;

template <typename Result, typename... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): converts as std::function does
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

/// A counter that one thread raises and others wait for.
class Epoch {
 public:
  void publish(std::uint32_t value);
  /// Returns once the counter has reached `value` (differences taken modulo 2^32).
  void wait_for(std::uint32_t value) const;
  /// Back to zero; nobody may be waiting.
  void reset() { value_.store(0, std::memory_order_relaxed); }

 private:
  alignas(128) std::atomic<std::uint32_t> value_{0};
};

/// Lets threads meet any number of times. Everything written before meet() is visible after it.
class Barrier {
 public:
  explicit Barrier(unsigned max_threads) : lines_(max_threads) {}

  /// Prepares for meetings of `n_threads` (at most max_threads); nobody may be in meet().
  void reset(unsigned n_threads);
  void meet(unsigned thread);
  unsigned n_threads() const { return n_threads_; }

 private:
  struct Line {
    Epoch arrived;
    std::uint32_t round = 0;  // the thread's own count
  };

  unsigned n_threads_ = 1;
  std::vector<Line> lines_;
  Epoch released_;
};

/// Up to size() threads, of which the caller of run() is number 0.
class ThreadPool {
 public:
  /// Starts n_threads - 1 workers. Error(out_of_memory) if the system refuses them.
  explicit ThreadPool(unsigned n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }

  /// Calls body(thread, barrier) on threads 0 .. n_threads - 1 (at most size()) and returns when all have
  /// returned. Callers of one pool take turns. The body must not throw.
  void run(unsigned n_threads, FunctionRef<void(unsigned, Barrier&)> body);

 private:
  void work(unsigned thread);

  std::mutex turn_;
  std::vector<std::thread> workers_;
  Epoch started_;
  std::vector<Epoch> finished_;
  std::uint32_t round_ = 0;
  // Written by run() before started_ is published, read by the workers after.
  unsigned active_ = 0;
  bool stopping_ = false;
  FunctionRef<void(unsigned, Barrier&)>* body_ = nullptr;
  Barrier barrier_;
};

}  // namespace quipu
