// quipu tokenize: a text as the tokens of a model's vocabulary.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/output.h"
#include "quipu/error.h"

namespace quipu::cli {

namespace {

struct TokenizeCommandOptions {
  std::string model;
  std::optional<std::string> text;
  bool no_add_special = false;
  bool no_parse_special = false;
  bool untrusted = false;
  bool decode = false;
  bool ids = false;
  bool json = false;
};

std::string as_json(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
  Json result;
  result["n_tokens"] = tokens.size();
  result["tokens"] = tokens;
  Json pieces = Json::array();
  for (const Token token : tokens) pieces.push_back(tokenizer.piece(token, true));
  result["pieces"] = std::move(pieces);
  return dump(result) + "\n";
}

std::string as_lines(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
  std::string result;
  for (const Token token : tokens)
    result += fmt::format("{}\t{}\n", token, quote_bytes(tokenizer.piece(token, true)));
  return result;
}

// Numbers with white space or commas between them.
std::vector<Token> parse_tokens(std::string_view text) {
  std::vector<Token> tokens;
  constexpr std::string_view kBetween = " \t\r\n,";
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;
       at = text.find_first_not_of(kBetween, at)) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    Token token = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, token);
    if (error != std::errc() || stop != text.data() + end) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not the number of a token", text.substr(at, end - at)));
    }
    tokens.push_back(token);
    at = end;
  }
  return tokens;
}

int tokenize(const TokenizeCommandOptions& options) {
  const Tokenizer tokenizer = ModelFile::open(options.model).tokenizer();
  const std::string text = text_argument(options.text, "TEXT");
  if (interrupted()) return interrupt_exit_code();
  if (options.decode) {
    const std::vector<Token> given = parse_tokens(text);
    write_output(tokenizer.detokenize(given, {.show_special = !options.no_parse_special}));
    return kOk;
  }
  const std::vector<Token> tokens = tokenizer.tokenize(text, {.add_special = !options.no_add_special,
                                                              .parse_special = !options.no_parse_special,
                                                              .untrusted = options.untrusted});
  if (options.json) {
    write_output(as_json(tokenizer, tokens));
  } else if (options.ids) {
    write_output(fmt::format("{}\n", fmt::join(tokens, " ")));
  } else {
    write_output(as_lines(tokenizer, tokens));
  }
  return kOk;
}

}  // namespace

void add_tokenize(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("tokenize", "Show the tokens of a text");
  command->footer(
      R"(Prints a line for each token: its number, a tab, and its text in quotes (bytes that are no whole character as
U+FFFD). With --decode it is the other way round: numbers of tokens become their text. A text that begins with a
dash goes behind `--`.

Examples:
  quipu tokenize model.gguf "Hello world"
  quipu tokenize model.gguf --ids - < text.txt
  quipu tokenize model.gguf --decode "1 2 3")");
  const auto options = std::make_shared<TokenizeCommandOptions>();
  command->add_option("MODEL", options->model, "GGUF file")->required()->type_name("FILE");
  command->add_option("TEXT", options->text, "The text; standard input if `-`, or absent in a pipe");
  command->add_flag("--no-add-special", options->no_add_special,
                    "Without the BOS and EOS that the model wants");
  command->add_flag(
      "--no-parse-special", options->no_parse_special,
      "Special tokens written out in the text (\"<|im_end|>\") are plain text (with --decode: are "
      "left out)");
  command->add_flag("--untrusted", options->untrusted,
                    "The text is of somebody else: nothing in it becomes a control token");
  auto* ids = command->add_flag("--ids", options->ids, "Only the numbers, on one line");
  auto* json =
      command->add_flag("--json", options->json, "One JSON object: n_tokens, tokens, pieces")->excludes(ids);
  command->add_flag("--decode", options->decode, "TEXT is numbers of tokens; print what they stand for")
      ->excludes(ids)
      ->excludes(json);
  command->callback([options, &exit_code] { exit_code = tokenize(*options); });
}

}  // namespace quipu::cli
