// What an observed plan remembers of its graph's nodes, to show them to a RunObserver.
#pragma once

#include <string>
#include <vector>

#include "backend/cpu/step.h"
#include "backend/device.h"

namespace quipu::cpu {

struct ObservedBuffer {
  std::string name;
  ElementType type;
  Shape shape;
  BufferId buffer;              ///< meaningless for a weight
  const WeightStorage* weight;  ///< null unless it is one
};

/// A node that can be looked at once a phase is over.
struct Observation {
  std::size_t phase;
  std::string_view operation;
  ObservedBuffer output;
  std::vector<ObservedBuffer> inputs;
};

/// Shows the node to the observer, if it wants that -> false if it ends the run.
bool show(const Observation& observation, const Run& run, RunObserver& observer);

}  // namespace quipu::cpu
