#pragma once

namespace quipu {

/// "0.1.0"
const char* version() noexcept;

}  // namespace quipu
