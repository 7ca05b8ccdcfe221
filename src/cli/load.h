// Loading a model, with progress on a terminal and an end by Ctrl-C.
#pragma once

#include <string>

#include "quipu/model.h"

namespace quipu::cli {

struct LoadedModel {
  Model model;
  double milliseconds;
};

/// An empty path is the built-in model.
LoadedModel load_model(const std::string& path);

/// The same for a file that is only looked into.
ModelFile open_file(const std::string& path);

}  // namespace quipu::cli
