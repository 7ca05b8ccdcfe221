// Small templates, each about one thing of the language, against what the reference makes of them
// (tests/data/chat/language.json). Where the reference gives an error so do we; its wording is kept where
// authors of templates rely on it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "chat/jinja/json.h"
#include "chat/jinja/template.h"
#include "quipu/error.h"
#include "support/files.h"

namespace quipu::jinja {
namespace {

using Json = nlohmann::ordered_json;

TEST(Language, IsThatOfTheReference) {
  std::ifstream file(test::data_dir() / "chat" / "language.json");
  const Json data = Json::parse(file);
  Variables variables;
  for (const auto& [name, value] : data["variables"].items()) {
    variables.emplace_back(name, parse_json(value.dump(), name));
  }
  const Clock clock = [](const std::string& format) {
    return format.find("%Y") != std::string::npos ? std::string("2026-12-01") : format;
  };
  const std::set<std::string> worded = {"UndefinedError", "TemplateError", "SecurityError",
                                        "TemplateRuntimeError"};
  for (const Json& expected : data["results"]) {
    const std::string source = expected["template"].get<std::string>();
    SCOPED_TRACE(source);
    std::string text, error;
    try {
      text = Template(source, "template").render(variables, clock).bytes;
    } catch (const Error& thrown) {
      error = thrown.message();
    }
    if (expected.contains("text")) {
      EXPECT_EQ(error, "");
      EXPECT_EQ(text, expected["text"].get<std::string>());
    } else {
      EXPECT_NE(error, "") << "got: " << text << "\nexpected: " << expected["error"] << ' '
                           << expected["message"];
      if (worded.count(expected["error"].get<std::string>()) == 0) continue;
      EXPECT_NE(error.find(expected["message"].get<std::string>()), std::string::npos)
          << "got: " << error << "\nexpected: " << expected["message"];
    }
  }
}

}  // namespace
}  // namespace quipu::jinja
