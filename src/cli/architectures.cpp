// quipu architectures: which models run, as a table, as JSON, or as pages for the documentation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/output.h"
#include "quipu/architectures.h"
#include "quipu/error.h"

namespace quipu::cli {

namespace {

struct ArchitecturesOptions {
  std::string markdown;  ///< folder; empty: none
  bool json = false;
};

void write_page(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(ErrorCode::io, fmt::format("{}: cannot be written", path.string()));
}

void write_pages(const std::filesystem::path& folder) {
  for (const SupportedFamily& family : supported_architectures())
    write_page(folder / (family.name + ".md"), family.page);
  write_page(folder / "README.md", supported_architectures_page());
}

std::string as_json() {
  Json result = Json::array();
  for (const SupportedFamily& family : supported_architectures()) {
    for (const std::string& name : family.architectures)
      result.push_back({{"name", name}, {"family", family.name}});
  }
  return dump(result) + "\n";
}

std::string as_text() {
  Table table({"FAMILY", "ARCHITECTURES"});
  for (const SupportedFamily& family : supported_architectures())
    table.add({family.name, fmt::format("{}", fmt::join(family.architectures, " "))});
  return table.text();
}

int list_architectures(const ArchitecturesOptions& options) {
  if (options.markdown.empty()) {
    write_output(options.json ? as_json() : as_text());
  } else {
    write_pages(options.markdown);
  }
  return kOk;
}

}  // namespace

void add_architectures(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("architectures", "List the architectures of models that run");
  command->footer(R"(A model file names its architecture in the key general.architecture.

Examples:
  quipu architectures
  quipu architectures --markdown docs/architectures)");
  const auto options = std::make_shared<ArchitecturesOptions>();
  auto* json = command->add_flag("--json", options->json, "A list of JSON objects");
  command
      ->add_option("--markdown", options->markdown,
                   "Write a page for each family into this folder, and an index of them")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory)
      ->excludes(json);
  command->callback([options, &exit_code] { exit_code = list_architectures(*options); });
}

}  // namespace quipu::cli
