// The public Observer as the layers below know it.
#pragma once

#include <memory>

#include "backend/device.h"
#include "quipu/observer.h"

namespace quipu {

/// Shows the observer what it is shown.
std::unique_ptr<RunObserver> wrap_observer(std::shared_ptr<Observer> observer);

}  // namespace quipu
