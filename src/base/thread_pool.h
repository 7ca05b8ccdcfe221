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

/// A counter that threads raise and others wait for. Everything written before raising it is visible to who
/// has waited.
class Epoch {
 public:
  void publish(std::uint32_t value);
  /// -> the value after it
  std::uint32_t add(std::uint32_t amount);
  /// Whether the counter has come to `value` (differences taken modulo 2^32).
  bool reached(std::uint32_t value) const;
  /// Returns once it has.
  void wait_for(std::uint32_t value) const;
  /// Back to zero; nobody may be waiting.
  void reset() { value_.store(0, std::memory_order_relaxed); }

 private:
  alignas(128) std::atomic<std::uint32_t> value_{0};
};

/// Up to size() threads, of which the caller of run() is number 0.
class WorkerPool {
 public:
  /// Starts n_threads - 1 workers. Error(out_of_memory) if the system refuses them.
  explicit WorkerPool(unsigned n_threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }

  /// Calls body(thread) on threads 0 .. n_threads - 1 (at most size()) and returns when all have
  /// returned. Callers of one pool take turns. The body must not throw.
  void run(unsigned n_threads, FunctionRef<void(unsigned)> body);

 private:
  void work(unsigned thread);
  void stop();

  std::mutex turn_;
  std::vector<std::thread> workers_;
  Epoch started_;
  std::vector<Epoch> finished_;
  std::uint32_t round_ = 0;
  // Written by run() before started_ is published, read by the workers after.
  unsigned active_ = 0;
  bool stopping_ = false;
  FunctionRef<void(unsigned)>* body_ = nullptr;
};

}  // namespace quipu
