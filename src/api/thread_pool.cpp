#include "quipu/thread_pool.h"

#include "api/guard.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "context/params.h"

namespace quipu {

int available_threads() {
  return static_cast<int>(available_cpus());
}

ThreadPool::ThreadPool(int n_threads)
    : workers_(guarded([&] {
        return std::make_shared<WorkerPool>(static_cast<unsigned>(resolve_threads("n_threads", n_threads)));
      })) {}

int ThreadPool::n_threads() const noexcept {
  return static_cast<int>(workers_->size());
}

}  // namespace quipu
