// quipu inspect: what is in a model file, as tables or JSON. The file is not loaded and need not be one that
// runs.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/output.h"

namespace quipu::cli {

namespace {

struct InspectOptions {
  std::string model;
  bool json = false;
  bool check = false;
};

template <typename T>
Json json_of_array(const std::vector<T>& elements) {
  Json array = Json::array();
  for (const auto& element : elements) {
    if constexpr (std::is_same_v<T, float>) {
      array.push_back(json_of(element));
    } else {
      array.push_back(static_cast<T>(element));
    }
  }
  return array;
}

Json json_of(const MetadataValue& value) {
  return std::visit(
      [](const auto& content) -> Json {
        using T = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<T, MetadataArray>) {
          return std::visit([](const auto& elements) { return json_of_array(elements); }, content);
        } else if constexpr (std::is_same_v<T, float>) {
          return cli::json_of(content);
        } else {
          return content;
        }
      },
      value);
}

Json describe(const ModelFile& file) {
  Json result;
  result["file"] = file.name();
  result["version"] = file.version();
  result["alignment"] = file.alignment();
  result["n_shards"] = file.n_shards();
  result["file_bytes"] = file.file_bytes();
  result["architecture"] = file.architecture();
  result["n_params"] = file.n_params();
  result["tensor_bytes"] = file.tensor_bytes();
  Json values = Json::object(), types = Json::object();
  const Metadata metadata = file.metadata();
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    const std::string key(metadata.key(i));
    values[key] = json_of(metadata.value(i));
    types[key] = metadata.type(i);
  }
  result["metadata"] = std::move(values);
  result["metadata_types"] = std::move(types);
  Json tensors = Json::array();
  for (const TensorDescription& tensor : file.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"shape", tensor.shape},
                       {"n_elements", tensor.n_elements},
                       {"bytes", tensor.bytes},
                       {"shard", tensor.shard},
                       {"offset", tensor.offset}});
  }
  result["tensors"] = std::move(tensors);
  return result;
}

Table metadata_table(const Metadata& metadata) {
  Table table({"KEY", "TYPE", "VALUE"});
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    table.add({printable(metadata.key(i)), metadata.type(i), metadata.display(i, 60)});
  }
  return table;
}

Table tensor_table(const std::vector<TensorDescription>& tensors) {
  Table table({"TENSOR", "TYPE", "SHAPE", "BYTES"});
  table.align_right(3);
  for (const TensorDescription& tensor : tensors) {
    table.add({printable(tensor.name), tensor.type, fmt::format("{}", fmt::join(tensor.shape, " x ")),
               fmt::format("{}", tensor.bytes)});
  }
  return table;
}

std::string as_text(const ModelFile& file) {
  const std::vector<TensorDescription> tensors = file.tensors();
  const Metadata metadata = file.metadata();
  std::string text = fmt::format("{}: GGUF version {}, {}", printable(file.name()), file.version(),
                                 human_bytes(file.file_bytes()));
  if (file.n_shards() > 1) text += fmt::format(" in {} files", file.n_shards());
  text += fmt::format("\narchitecture {}, {} parameters in {} tensors, {} keys\n\n",
                      printable(file.architecture()), human_count(file.n_params()), tensors.size(),
                      metadata.size());
  text += metadata_table(metadata).text();
  text += '\n';
  text += tensor_table(tensors).text();
  return text;
}

int check(const ModelFile& file, bool json) {
  const ModelFileCheck report = file.check();
  std::string text;
  if (json) {
    Json result;
    result["file"] = file.name();
    result["problems"] = report.problems;
    result["unused_tensors"] = report.unused_tensors;
    text = dump(result) + "\n";
  } else {
    for (const std::string& problem : report.problems) text += printable(problem) + "\n";
    for (const std::string& tensor : report.unused_tensors)
      text += fmt::format("{}: tensor '{}' is not used\n", printable(file.name()), printable(tensor));
    if (report.problems.empty()) text += fmt::format("{}: can be loaded\n", printable(file.name()));
  }
  write_output(text);
  return report.problems.empty() ? kOk : kFailed;
}

int inspect(const InspectOptions& options) {
  const ModelFile file = open_file(options.model);
  if (options.check) return check(file, options.json);
  write_output(options.json ? dump(describe(file)) + "\n" : as_text(file));
  return kOk;
}

}  // namespace

void add_inspect(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("inspect", "Show the metadata and tensors of a model file");
  command->footer(
      R"(The file is checked whole but not loaded; its architecture need not be one that runs. Of a split model give the
first file. Shapes are innermost dimension first, as in the file.

With --check, all that keeps the file from being loaded is listed, and the exit code is 1 if there is something.

Examples:
  quipu inspect model.gguf
  quipu inspect --check model.gguf
  quipu inspect model.gguf --json | jq '.metadata["general.name"], .n_params')");
  const auto options = std::make_shared<InspectOptions>();
  command->add_option("MODEL", options->model, "GGUF file; the built-in model if absent")->type_name("FILE");
  command->add_flag("--json", options->json, "One JSON object, with every element of every array");
  command->add_flag("--check", options->check, "List all that keeps the model from being loaded");
  command->callback([options, &exit_code] { exit_code = inspect(*options); });
}

}  // namespace quipu::cli
