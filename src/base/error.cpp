#include "base/error.h"

namespace quipu {

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::bad_file: return "bad_file";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::io: return "io";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

void fail_check(const char* condition, const char* file, int line) {
  fail(ErrorCode::internal, "internal error: {} does not hold ({}:{})", condition, file, line);
}

}  // namespace quipu
