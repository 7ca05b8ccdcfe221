// quipu chat: a conversation with a model, line by line.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/line_editor.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/sampling_arguments.h"
#include "quipu/chat.h"
#include "quipu/error.h"

namespace quipu::cli {

namespace {

struct ChatOptions {
  std::string model;
  std::string system;
  std::string template_name;
  std::string template_file;
  std::vector<std::string> stops;
  int n_predict = -1;
  SamplingArguments sampling;
  int threads = 0;
  std::uint32_t n_ctx = 0;
};

constexpr const char* kHelp = R"(  /help            this
  /clear           forget the conversation
  /undo            forget your last message and the answer
  /regen           another answer to your last message
  /system [TEXT]   show or change the system's message
  /params [ARGS]   show or change the settings: /params --temp 0.2 --top-k 10
  /save FILE       keep the conversation, and beside it what was computed (FILE.state)
  /load FILE       go on with a kept one
  /exit            the end, as is Ctrl-D
A line that ends with a backslash goes on in the next. """ begins a text of several lines, and """ ends it.
Ctrl-C stops an answer; twice at the prompt it ends the program.
)";

class Chat {
 public:
  Chat(ChatSession& session, bool on_terminal) : session_(session), on_terminal_(on_terminal) {
    const char* no_color = std::getenv("NO_COLOR");
    colored_ = on_terminal_ && output_is_terminal() && (no_color == nullptr || *no_color == 0);
  }

  int run() {
    if (on_terminal_) catch_interrupts_again();
    const std::unique_ptr<LineReader> reader = make_line_reader();
    for (int n_interrupts = 0; n_interrupts < 2;) {
      std::string text;
      switch (read_message(*reader, text)) {
        case LineReader::Event::end: return kOk;
        case LineReader::Event::interrupted:
          if (!on_terminal_ || interrupt_exit_code() != kInterrupted) return interrupt_exit_code();
          if (++n_interrupts < 2) note("Ctrl-C once more, Ctrl-D or /exit ends the program");
          if (n_interrupts < 2) forget_interrupt();
          continue;
        case LineReader::Event::line: n_interrupts = 0;
      }
      if (!handle(text)) return kOk;
      if (!interrupted()) continue;
      if (!on_terminal_ || interrupt_exit_code() != kInterrupted) return interrupt_exit_code();
      forget_interrupt();
    }
    return interrupt_exit_code();
  }

 private:
  std::string prompt(const char* text) const {
    // The bytes 1 tell the editor what takes no room.
    return colored_ ? fmt::format("\1\x1b[1;32m\1{}", text) : std::string(text);
  }

  /// A line, in colour as it is typed.
  LineReader::Event read_line(LineReader& reader, const char* prompt_text, std::string& line) const {
    const LineReader::Event event = reader.read(prompt(prompt_text), line);
    if (colored_) write_output("\x1b[0m");
    return event;
  }

  /// Lines up to the end of a message.
  LineReader::Event read_message(LineReader& reader, std::string& text) {
    constexpr std::string_view kQuotes = "\"\"\"";
    std::string line;
    LineReader::Event event = read_line(reader, "> ", line);
    const bool quoted = line.starts_with(kQuotes);
    if (quoted) line.erase(0, kQuotes.size());
    while (event == LineReader::Event::line) {
      const bool more = quoted ? !line.ends_with(kQuotes) : line.ends_with('\\');
      if (quoted && !more) line.erase(line.size() - kQuotes.size());
      if (!quoted && more) line.pop_back();
      text += line;
      if (!more) return event;
      text += '\n';
      event = read_line(reader, ". ", line);
    }
    return event == LineReader::Event::end && !text.empty() ? LineReader::Event::line : event;
  }

  void note(const std::string& text) const {
    write_diagnostic(colored_ && diagnostics_are_on_terminal() ? fmt::format("\x1b[2m{}\x1b[0m\n", text)
                                                               : fmt::format("{}\n", text));
  }

  /// False to end the program. What fails is told, and the conversation goes on.
  bool handle(const std::string& text) {
    if (text.find_first_not_of(" \t\n") == std::string::npos) return true;
    try {
      if (text.starts_with('/')) return command(text);
      show_answer([&](const auto& on_text) { return session_.say(text, on_text); });
    } catch (const Error& error) {
      note(fmt::format("quipu: {}", error.message()));
    } catch (const CLI::ParseError& error) {
      note(fmt::format("quipu: {}", error.what()));
    }
    return true;
  }

  template <typename Answer>
  void show_answer(const Answer& answer) {
    bool ends_line = false;
    const StopReason stop = answer([&](const std::string& piece) {
      if (piece.empty()) return;
      write_output(piece);
      ends_line = piece.back() == '\n';
    });
    if (!ends_line) write_output("\n");
    if (stop == StopReason::context) note("(the context is full: /clear, or a larger --ctx)");
    if (stop == StopReason::interrupted) note("(interrupted)");
    if (session_.n_left_out() > 0) {
      note(fmt::format("(the oldest {} messages do not fit into the context and were left out)",
                       session_.n_left_out()));
    }
  }

  bool command(const std::string& text) {
    const std::size_t space = text.find_first_of(" \t\n");
    const std::string name = text.substr(0, space);
    const std::size_t begin = text.find_first_not_of(" \t\n", space);
    const std::string rest =
        space == std::string::npos || begin == std::string::npos ? "" : text.substr(begin);
    if (name == "/exit" || name == "/quit") return false;
    if (name == "/help") {
      write_output(kHelp);
    } else if (name == "/clear") {
      session_.clear();
    } else if (name == "/undo") {
      if (!session_.undo()) note("there is nothing to undo");
    } else if (name == "/regen") {
      regenerate();
    } else if (name == "/system") {
      if (rest.empty()) write_output(session_.system() + "\n");
      if (!rest.empty()) session_.set_system(rest);
    } else if (name == "/params") {
      parameters(rest);
    } else if (name == "/save" || name == "/load") {
      if (rest.empty()) {
        note(fmt::format("{} needs the name of a file", name));
      } else {
        name == "/save" ? session_.save(rest) : session_.load(rest);
      }
    } else {
      note(fmt::format("{} is no command; /help lists them", name));
    }
    return true;
  }

  void regenerate() {
    if (session_.messages().empty() || session_.messages().back().role != "assistant") {
      return note("there is no answer yet");
    }
    show_answer([&](const auto& on_text) {
      StopReason stop = StopReason::end;
      session_.answer_again(on_text, stop);
      return stop;
    });
  }

  void parameters(const std::string& arguments) {
    if (arguments.empty()) {
      write_output(dump(settings_json(session_.sampling(), session_.seed()), -1) + "\n");
      return;
    }
    CLI::App parser;
    SamplingArguments sampling;
    sampling.add_to(parser);
    parser.parse(arguments, false);
    session_.sampling().seed.reset();
    sampling.apply_to(session_.sampling());
    if (session_.sampling().seed) session_.set_seed(*session_.sampling().seed);
  }

  ChatSession& session_;
  bool on_terminal_;
  bool colored_ = false;
};

ChatTemplate chat_template(const Model& model, const ChatOptions& options) {
  if (options.template_file.empty()) return ChatTemplate::of(model, options.template_name);
  std::ifstream file(options.template_file, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(ErrorCode::io, fmt::format("{}: cannot be read", options.template_file));
  return ChatTemplate::from_text(text.str(), model.tokenizer(), options.template_file);
}

int chat(const ChatOptions& options) {
  const Model model = load_model(options.model).model;
  const ChatTemplate used = chat_template(model, options);
  ContextOptions context_options;
  context_options.n_ctx = context_length(model, options.n_ctx, 0, options.n_predict);
  context_options.n_threads = context_options.n_threads_batch = options.threads;
  context_options.abort = [] { return interrupted(); };
  Context context(model, context_options);
  SamplingOptions sampling = model.recommended_sampling();
  options.sampling.apply_to(sampling);
  GenerateOptions generate_options;
  generate_options.max_tokens = options.n_predict;
  generate_options.stops = options.stops;
  ChatSession session(context, used, sampling, generate_options);
  session.set_system(options.system);
  const bool on_terminal = input_is_terminal();
  if (on_terminal) {
    write_diagnostic(fmt::format("{}, template: {}; /help for help\n", model.name(), used.origin()));
  }
  return Chat(session, on_terminal).run();
}

}  // namespace

void add_chat(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("chat", "Talk with a model");
  command->footer(
      R"(Each line is a message; the answer streams as it comes. Special tokens that are written out in a message are plain
text. The prompt is made by the chat template of the model file; where it has none, by ChatML or plain lines, whichever
suits its vocabulary. On a terminal lines can be edited and Ctrl-C stops an answer. In a pipe the program ends with its
input, and answers go to standard output without anything else. /help lists the commands of the conversation.

Examples:
  quipu chat
  quipu chat -m model.gguf --system "You are terse." --temp 0.3
  echo "What is the capital of Peru?" | quipu chat --temp 0)");
  const auto options = std::make_shared<ChatOptions>();
  command->add_option("-m,--model", options->model, "GGUF file; the built-in model if absent")
      ->type_name("FILE");
  command->add_option("--system", options->system, "The system's message")->type_name("TEXT");
  auto* name =
      command->add_option("--template", options->template_name, "One of the model's named templates");
  command->add_option("--template-file", options->template_file, "A Jinja template in place of the model's")
      ->type_name("FILE")
      ->excludes(name);
  command
      ->add_option("-r,--stop", options->stops, "Text that ends an answer and is not shown; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("-n,--n-predict", options->n_predict, "Most tokens of an answer; negative: no limit")
      ->capture_default_str();
  options->sampling.add_to(*command);
  command->add_option("-t,--threads", options->threads, "Threads; as many as there are processors if absent")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  command
      ->add_option("-c,--ctx", options->n_ctx,
                   "Tokens of context; if absent what the model was trained for, at most 4096")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 30).description(""));
  command->callback([options, &exit_code] { exit_code = chat(*options); });
}

}  // namespace quipu::cli
