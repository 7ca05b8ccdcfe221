// What a context has done, and how long it took.
#pragma once

#include <cstdint>

namespace quipu {

/// Times in seconds stay 0 where a context keeps none.
struct ContextCounters {
  double load_seconds = 0;  ///< from the context's making to its first run
  double prompt_seconds = 0;
  double generation_seconds = 0;
  std::uint64_t prompt_tokens = 0;      ///< submitted in batches of several tokens
  std::uint64_t generation_tokens = 0;  ///< submitted one at a time
  std::uint64_t plans_reused = 0;       ///< runs that needed no new plan
  std::uint64_t reallocations = 0;      ///< since the context was made; a reset keeps them
};

}  // namespace quipu
