#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/format.h"

namespace quipu::cli {

namespace {

std::string number(const Json& value) {
  return value.is_number() ? fmt::format("{:.1f}", value.get<double>()) : "-";
}

/// "63.1 (60.0 - 65.2)": the median and its range.
std::string figure(const Json& result, const std::string& name) {
  if (!result[name].is_number()) return "-";
  return fmt::format("{} ({} - {})", number(result[name]), number(result[name + "_min"]),
                     number(result[name + "_max"]));
}

std::string ratio(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "-";
}

std::string file_name(const std::string& path) {
  return printable(path.substr(path.rfind('/') + 1));
}

bool several_models(const Json& results) {
  return std::any_of(results.begin(), results.end(),
                     [&](const Json& result) { return result["file"] != results[0]["file"]; });
}

Table table_of(const Json& results) {
  const bool with_model = several_models(results);
  const bool with_peer = !results.empty() && results[0].contains("peer_prompt_tps");
  std::vector<std::string> titles{"PROMPT",  "GENERATE",        "DEPTH",
                                  "THREADS", "PROMPT TOKENS/S", "GENERATED TOKENS/S"};
  if (with_peer) {
    for (const char* title : {"PEER'S", "PEER'S", "RATIO", "RATIO"}) titles.push_back(title);
  }
  titles.push_back("PEAK MEMORY");
  if (with_model) titles.insert(titles.begin(), "MODEL");
  Table table(titles);
  for (std::size_t column = with_model ? 1 : 0; column < titles.size(); ++column) table.align_right(column);
  for (const Json& result : results) {
    std::vector<std::string> cells;
    if (with_model) cells.push_back(file_name(result["file"].get<std::string>()));
    for (const char* name : {"n_prompt", "n_gen", "depth", "threads"}) cells.push_back(result[name].dump());
    for (const char* name : {"prompt_tps", "generation_tps"}) cells.push_back(figure(result, name));
    if (with_peer) {
      for (const char* name : {"peer_prompt_tps", "peer_generation_tps"})
        cells.push_back(number(result[name]));
      for (const char* name : {"prompt_ratio", "generation_ratio"}) cells.push_back(ratio(result[name]));
    }
    cells.push_back(human_bytes(result["peak_memory_bytes"].get<std::uint64_t>()));
    table.add(std::move(cells));
  }
  return table;
}

/// A heading for each model, and one table.
std::string as_table(const Json& results) {
  std::string text;
  const Json* model = nullptr;
  for (const Json& result : results) {
    if (model != nullptr && (*model)["file"] == result["file"]) continue;
    model = &result;
    text += fmt::format(
        "{}: {}, {} parameters, {}, loaded in {:.0f} ms; {} kernels; median of {} (lowest - highest)\n",
        printable(result["model"].get<std::string>()), printable(result["architecture"].get<std::string>()),
        human_count(result["n_params"].get<std::uint64_t>()),
        human_bytes(result["model_bytes"].get<std::uint64_t>()), result["load_ms"].get<double>(),
        result["kernels"].get<std::string>(), result["repeats"].dump());
  }
  return text + table_of(results).text();
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string quoted = "\"";
  for (const char c : value.get<std::string>()) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

/// All values but the lists.
std::string as_csv(const Json& results) {
  std::string text;
  if (results.empty()) return text;
  const auto add_line = [&](const Json& result, auto cell) {
    const char* separator = "";
    for (const auto& [key, value] : result.items()) {
      if (value.is_array()) continue;
      text.append(separator).append(cell(key, value));
      separator = ",";
    }
    text += "\n";
  };
  add_line(results[0], [](const std::string& key, const Json&) { return key; });
  for (const Json& result : results)
    add_line(result, [](const std::string&, const Json& value) { return csv_cell(value); });
  return text;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string report(const Json& results, ReportFormat format) {
  switch (format) {
    case ReportFormat::table: return as_table(results);
    case ReportFormat::markdown: return table_of(results).markdown();
    case ReportFormat::csv: return as_csv(results);
    case ReportFormat::json: return dump(results) + "\n";
  }
  return {};
}

}  // namespace quipu::cli
