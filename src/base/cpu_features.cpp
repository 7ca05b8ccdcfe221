#include "base/cpu_features.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

namespace quipu {
namespace {

#if defined(__x86_64__)
X86Registers read_x86_registers() {
  X86Registers registers;
  std::uint32_t eax = 0;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 0;
  std::uint32_t edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return registers;
  registers.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    registers.leaf7_ebx = ebx;
    registers.leaf7_ecx = ecx;
    const std::uint32_t last_subleaf = eax;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0)
      registers.leaf7_1_eax = eax;
  }
  constexpr std::uint32_t kOsxsave = 1u << 27;  // without it, xgetbv is an illegal instruction
  if ((registers.leaf1_ecx & kOsxsave) != 0) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    registers.xcr0 = (static_cast<std::uint64_t>(high) << 32) | low;
  }
  return registers;
}
#endif

unsigned affinity_cpus() {
#if defined(__linux__)
  // The kernel refuses a mask shorter than its own, whose length it does not tell: grow until it fits.
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      return static_cast<unsigned>(std::max(1, CPU_COUNT_S(bytes, mask.data())));
    }
  }
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

/// quota / period in whole processors; a quota below zero, or a period of zero, is no quota.
std::optional<unsigned> processors(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return std::nullopt;
  const std::int64_t count = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<unsigned>(std::min<std::int64_t>(count, std::numeric_limits<int>::max()));
}

/// A small file of the system as text; empty if it cannot be read. Not through streams, which libstdc++ does
/// not clean up properly when memory runs out.
std::string read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (file == nullptr) return {};
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

/// The number that `text` begins with, which is then taken off it.
std::optional<std::int64_t> take_number(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// "QUOTA PERIOD", or "max PERIOD", which is no number and so no quota.
std::optional<unsigned> quota_v2(const std::string& group) {
  const std::string text = read_text(group + "/cpu.max");
  std::string_view rest = text;
  const std::optional<std::int64_t> quota = take_number(rest);
  const std::optional<std::int64_t> period = take_number(rest);
  return quota && period ? processors(*quota, *period) : std::nullopt;
}

std::optional<unsigned> quota_v1(const std::string& group) {
  const std::string quota_text = read_text(group + "/cpu.cfs_quota_us");
  const std::string period_text = read_text(group + "/cpu.cfs_period_us");
  std::string_view quota_rest = quota_text, period_rest = period_text;
  const std::optional<std::int64_t> quota = take_number(quota_rest);
  const std::optional<std::int64_t> period = take_number(period_rest);
  return quota && period ? processors(*quota, *period) : std::nullopt;
}

void keep_least(std::optional<unsigned>& least, std::optional<unsigned> value) {
  if (value) least = least ? std::min(*least, *value) : *value;
}

/// The least quota of a group and its ancestors. In a container the path is often the host's, and only its
/// end or only the root exists under the mount; folders that are missing have no say.
std::optional<unsigned> least_quota(const std::string& mount, std::string_view group,
                                    std::optional<unsigned> (*read_quota)(const std::string&)) {
  std::optional<unsigned> least;
  while (!group.empty() && group.back() == '/') group.remove_suffix(1);
  while (true) {
    keep_least(least, read_quota(mount + std::string(group)));
    if (group.empty()) return least;
    group = group.substr(0, group.rfind('/'));
  }
}

bool lists_controller(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == wanted) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

CpuFeatures decode_x86_features(const X86Registers& registers) {
  const auto all = [](std::uint32_t word, std::initializer_list<unsigned> bits) {
    return std::all_of(bits.begin(), bits.end(), [word](unsigned bit) { return ((word >> bit) & 1u) != 0; });
  };
  constexpr std::uint64_t kYmmState = 0x6;   // XMM, YMM
  constexpr std::uint64_t kZmmState = 0xe6;  // and the mask registers, both halves of ZMM
  const bool ymm = all(registers.leaf1_ecx, {27, 28}) && (registers.xcr0 & kYmmState) == kYmmState;
  const bool zmm = ymm && (registers.xcr0 & kZmmState) == kZmmState;

  CpuFeatures features;
  features.avx2 = ymm && all(registers.leaf1_ecx, {12, 29}) && all(registers.leaf7_ebx, {5});
  features.avx_vnni = features.avx2 && all(registers.leaf7_1_eax, {4});
  features.avx512 = zmm && features.avx2 && all(registers.leaf7_ebx, {16, 17, 30, 31});
  features.avx512_vnni = features.avx512 && all(registers.leaf7_ecx, {11});
  features.avx512_bf16 = features.avx512 && all(registers.leaf7_1_eax, {5});
  features.avx512_vbmi = features.avx512 && all(registers.leaf7_ecx, {1});
  features.gfni = features.avx2 && all(registers.leaf7_ecx, {8});
  return features;
}

const CpuFeatures& cpu_features() {
#if defined(__x86_64__)
  static const CpuFeatures features = decode_x86_features(read_x86_registers());
#else
  static const CpuFeatures features;
#endif
  return features;
}

std::optional<unsigned> cgroup_cpu_quota(const std::string& root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  const std::string groups = read_text(root + "/proc/self/cgroup");  // lines "ID:CONTROLLERS:PATH"
  std::optional<unsigned> least;
  for (std::string_view rest = groups; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || line.substr(second + 1, 1) != "/") continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view group = line.substr(second + 1);
    if (controllers.empty()) {  // version 2
      keep_least(least, least_quota(mounts, group, quota_v2));
      keep_least(least, least_quota(mounts + "/unified", group, quota_v2));
    } else if (lists_controller(controllers, "cpu")) {
      keep_least(least, least_quota(mounts + "/cpu", group, quota_v1));
      keep_least(least, least_quota(mounts + "/" + std::string(controllers), group, quota_v1));
    }
  }
  return least;
}

unsigned available_cpus() {
  const unsigned cpus = affinity_cpus();
  return std::min(cpus, cgroup_cpu_quota().value_or(cpus));
}

}  // namespace quipu
