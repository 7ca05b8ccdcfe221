// The templates of published models against what the reference makes of them (Jinja2 3.1 as the transformers
// library sets it up): every text byte for byte, and an error with the same message wherever the reference
// has one.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "chat/jinja/json.h"
#include "chat/jinja/template.h"
#include "quipu/error.h"
#include "support/files.h"

namespace quipu::jinja {
namespace {

using Json = nlohmann::ordered_json;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Variables variables_of(const Json& environment, const Json& conversation) {
  Variables variables;
  for (const char* name : {"bos_token", "eos_token"}) {
    variables.emplace_back(name, Value::text(environment[name].get<std::string>()));
  }
  for (const auto& [name, value] : conversation.items()) {
    variables.emplace_back(name, parse_json(value.dump(), name));
  }
  return variables;
}

std::string fixed_clock(const std::string& format) {
  return format.find("%Y") != std::string::npos ? "2026-12-01" : format;
}

/// Runs all templates of a folder against its expected.json.
void check(const std::filesystem::path& folder) {
  const Json golden = Json::parse(read(folder / "expected.json"));
  std::size_t n_results = 0;
  for (const auto& [name, cases] : golden["expected"].items()) {
    const Template compiled(read(folder / "templates" / name), name);
    for (const auto& [label, expected] : cases.items()) {
      SCOPED_TRACE(name + ", " + label);
      ++n_results;
      const Variables variables = variables_of(golden["environment"], golden["cases"][label]);
      std::string text, error;
      try {
        text = compiled.render(variables, fixed_clock).bytes;
      } catch (const Error& thrown) {
        error = thrown.message();
      }
      if (expected.contains("text")) {
        EXPECT_EQ(error, "");
        EXPECT_EQ(text, expected["text"].get<std::string>());
      } else {
        EXPECT_NE(error.find(expected["message"].get<std::string>()), std::string::npos)
            << "got: " << error << text << "\nexpected: " << expected["message"];
      }
    }
  }
  std::size_t n_expected = 0;
  for (const auto& [name, cases] : golden["expected"].items()) n_expected += cases.size();
  EXPECT_EQ(n_results, n_expected);
}

TEST(ChatTemplates, OfPublishedModelsGiveWhatTheReferenceGives) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "the templates of published models are not here (../shared/golden/chat)";
  check(*shared / "golden" / "chat");
}

TEST(ChatTemplates, OfOurOwnGiveWhatTheReferenceGives) {
  check(test::data_dir() / "chat");
}

}  // namespace
}  // namespace quipu::jinja
