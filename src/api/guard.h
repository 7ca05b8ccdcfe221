// The edge of the library: nothing but quipu::Error leaves it.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "quipu/error.h"

namespace quipu {

/// Calls `function`; exceptions of the standard library become Error.
template <typename Function>
auto guarded(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "out of memory");
  } catch (const std::length_error&) {  // a container asked for more than can exist
    throw Error(ErrorCode::out_of_memory, "out of memory");
  } catch (const std::exception& exception) {
    throw Error(ErrorCode::internal, exception.what());
  }
}

}  // namespace quipu
