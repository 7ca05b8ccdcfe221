// The host's processor as a device.
#include "backend/cpu/compiler.h"
#include "backend/cpu/storage.h"
#include "backend/device.h"
#include "base/error.h"

namespace quipu {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(Backing backing) : backing_(backing) {}

  std::string_view name() const override { return "CPU"; }

  std::unique_ptr<WeightStorage> create_weight(ElementType type, WeightRole role,
                                               const Shape& shape) override {
    if (role == WeightRole::vector) {
      return std::make_unique<cpu::VectorStorage>(type, shape.dim(0), shape.row_elements());
    }
    QUIPU_CHECK(shape.rank() == 2 || shape.rank() == 3);
    if (!info(type).decodable)
      fail(ErrorCode::unsupported, "matrices of type {} are not supported", info(type).name);
    const bool has_slabs = shape.rank() == 3;
    return std::make_unique<cpu::MatrixStorage>(type, has_slabs ? shape.dim(0) : 1,
                                                shape.dim(has_slabs ? 1 : 0), shape.last(), backing_);
  }

  std::unique_ptr<KvStorage> create_kv(const KvShape& shape, std::size_t n_pages) override {
    return std::make_unique<cpu::KvPages>(shape, n_pages, backing_);
  }

  std::unique_ptr<Plan> compile(const Graph& graph, const Extents& max_extents,
                                unsigned max_threads) override {
    return cpu::Compiler(graph, max_extents, backing_).compile(max_threads);
  }

  std::unique_ptr<Plan> compile_observed(const Graph& graph, const Extents& max_extents,
                                         unsigned max_threads) override {
    return cpu::Compiler(graph, max_extents, backing_).compile_observed(max_threads);
  }

 private:
  Backing backing_;  // of everything but vectors
};

}  // namespace

std::unique_ptr<Device> create_cpu_device(Backing backing) {
  return std::make_unique<CpuDevice>(backing);
}

}  // namespace quipu
