#include "quipu/version.h"

namespace quipu {

const char* version() noexcept {
  return QUIPU_VERSION;
}

}  // namespace quipu
