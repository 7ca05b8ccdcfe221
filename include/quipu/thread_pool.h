// Threads that contexts compute with.
#pragma once

#include <memory>

namespace quipu {

class WorkerPool;

/// Threads that compute well here: the processors that this process may use.
int available_threads();

/// Threads for contexts to share (Context::attach), so that several do not have more threads than there are
/// processors. A shared handle: cheap to copy; the threads end with the last copy and the last context that
/// is attached. Contexts may run on one pool from several threads at once: they take turns, run by run.
class ThreadPool {
 public:
  /// 0 and below: available_threads(). The caller of a run is one of them. Error(invalid_argument) if there
  /// are too many; Error(out_of_memory) if the system refuses them.
  explicit ThreadPool(int n_threads = 0);

  int n_threads() const noexcept;

 private:
  friend struct ApiAccess;
  std::shared_ptr<WorkerPool> workers_;
};

}  // namespace quipu
