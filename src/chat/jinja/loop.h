// The object `loop` inside a for loop.
#pragma once

#include <optional>

#include "chat/jinja/value.h"

namespace quipu::jinja {

struct For;
class Scope;

struct Loop {
  Elements elements;
  std::size_t index = 0;  ///< from 0
  std::size_t recursion = 0;
  bool active = true;  ///< false once the loop is over, as for one that was kept in a namespace
  std::optional<std::vector<Value>> last_changed;  ///< only while active, since it may hold this object
  std::uint32_t depth_of_values = 1;
  /// Of loops that may be called: the statement, and what it stands in (only while active).
  const For* recursive = nullptr;
  std::shared_ptr<Scope> outside;
};

}  // namespace quipu::jinja
