// What a context remembers goes into a file and comes back in another context, which goes on with the very
// same numbers. save_restore [FILE]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "quipu/quipu.h"

namespace {

// The likeliest tokens, one after the other.
std::string continued(quipu::Context& context, quipu::Token next) {
  const quipu::Tokenizer tokenizer = context.model().tokenizer();
  std::vector<quipu::Token> tokens;
  for (int i = 0; i < 24; ++i) {
    if (context.decode({&next, 1}) != quipu::DecodeResult::ok) break;
    const auto logits = context.logits(-1);
    next = static_cast<quipu::Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    tokens.push_back(next);
  }
  return tokenizer.detokenize(tokens);
}

bool save_and_restore(const std::filesystem::path& path) {
  const quipu::Model model = quipu::Model::built_in();
  std::vector<quipu::Token> tokens = model.tokenizer().tokenize("Once upon a time there was a cat");
  const quipu::Token last = tokens.back();
  tokens.pop_back();

  quipu::Context first(model);
  first.decode(tokens);
  first.save_file(path, {.tokens = tokens});  // the tokens are kept along, to know what the state stands for
  const std::string expected = continued(first, last);

  quipu::ContextOptions larger;  // a state fits wherever there is room
  larger.n_ctx = 1024;
  quipu::Context second(model, larger);
  const std::vector<quipu::Token> known = second.load_file(path);
  const std::string actual = continued(second, last);

  std::printf("%zu tokens restored from %s\n", known.size(), path.string().c_str());
  std::printf("before: %s\nafter:  %s\n", expected.c_str(), actual.c_str());
  return actual == expected;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path path =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path() / "quipu-state";
  try {
    return save_and_restore(path) ? 0 : 1;
  } catch (const quipu::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
