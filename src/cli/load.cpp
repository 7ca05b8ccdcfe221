#include "cli/load.h"

#include <chrono>

#include "cli/interrupt.h"
#include "cli/progress.h"

namespace quipu::cli {

LoadedModel load_model(const std::string& path) {
  Progress progress;
  ModelOptions options;
  options.progress = [&](float fraction) {
    progress.show("loading", static_cast<double>(fraction));
    return !interrupted();
  };
  const auto start = std::chrono::steady_clock::now();
  Model model = path.empty() ? Model::built_in(options) : Model::load(path, options);
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  return {std::move(model), elapsed.count()};
}

ModelFile open_file(const std::string& path) {
  return path.empty() ? ModelFile::built_in() : ModelFile::open(path);
}

}  // namespace quipu::cli
