#include "quipu/cpu.h"

#include <algorithm>

#include "api/guard.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/roofline.h"

namespace quipu {

std::string cpu_kernels() {
  return guarded([] { return std::string(cpu::kernels().name); });
}

CpuRoofline measure_cpu_roofline(int n_threads) {
  return guarded([&] {
    const cpu::Roofline measured = cpu::measure_roofline(static_cast<unsigned>(std::max(n_threads, 1)));
    CpuRoofline roofline{measured.read_bytes, {}};
    for (const cpu::Peak& peak : measured.peaks) {
      roofline.peaks.push_back({std::string(peak.name), peak.operations});
    }
    return roofline;
  });
}

}  // namespace quipu
