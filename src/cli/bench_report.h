// The results of `quipu bench` as text.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"

namespace quipu::cli {

enum class ReportFormat { table, markdown, csv, json };

/// The median; of an even number of values the mean of the middle two.
double median(std::vector<double> values);

/// `results`: an array with one object for each combination, all with the same keys, as docs of the command
/// say.
std::string report(const Json& results, ReportFormat format);

}  // namespace quipu::cli
