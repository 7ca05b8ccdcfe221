#include "quipu/architectures.h"

#include "api/guard.h"
#include "model/arch/pages.h"

namespace quipu {

std::vector<SupportedFamily> supported_architectures() {
  return guarded([] {
    std::vector<SupportedFamily> result;
    for (const ArchitectureFamily& family : architecture_families()) {
      SupportedFamily supported{.name = std::string(family.name),
                                .title = std::string(family.title),
                                .architectures = {},
                                .page = family_page(family)};
      for (const Architecture& arch : family.architectures) supported.architectures.emplace_back(arch.name);
      result.push_back(std::move(supported));
    }
    return result;
  });
}

std::string supported_architectures_page() {
  return guarded([] { return families_page(); });
}

}  // namespace quipu
