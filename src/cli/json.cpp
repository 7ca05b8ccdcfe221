#include "cli/json.h"

#include <charconv>
#include <cmath>

namespace quipu::cli {

std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json json_of(float value) {
  if (!std::isfinite(value)) return nullptr;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double shortest = 0;
  std::from_chars(text, end, shortest);
  return shortest;
}

std::string quote_bytes(std::string_view bytes) {
  return dump(Json(std::string(bytes)), -1);
}

}  // namespace quipu::cli
