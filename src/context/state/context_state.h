// The state of an inference context: the facts that its stored numbers depend on.
#pragma once

#include "context/context.h"
#include "context/state/state.h"

namespace quipu {

/// For the functions of state.h. Valid while the context is there and its parameters stay.
StateAccess state_access(InferenceContext& context);

}  // namespace quipu
