// Continues a text. generate [PROMPT [MODEL.gguf]]
#include <cstdio>
#include <string>
#include <vector>

#include "quipu/quipu.h"

namespace {

void generate(const std::string& prompt, const quipu::Model& model) {
  const quipu::Tokenizer tokenizer = model.tokenizer();
  quipu::Context context(model);
  quipu::Sampler sampler(model.recommended_sampling());
  quipu::TextStream text(tokenizer);  // characters may need several tokens

  std::vector<quipu::Token> tokens = tokenizer.tokenize(prompt);
  std::printf("%s", prompt.c_str());
  for (int i = 0; i < 64; ++i) {
    // Tokens continue the sequence: first the whole prompt, then each new token.
    if (context.decode(tokens) != quipu::DecodeResult::ok) break;  // the context is full
    const quipu::Token next = sampler.sample(context.logits(-1));
    sampler.accept(next);
    if (tokenizer.ends_generation(next)) break;
    std::printf("%s", text.add(next).c_str());
    std::fflush(stdout);
    tokens = {next};
  }
  std::printf("%s\n", text.finish().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    generate(argc > 1 ? argv[1] : "Once upon a time",
             argc > 2 ? quipu::Model::load(argv[2]) : quipu::Model::built_in());
  } catch (const quipu::Error& error) {  // nothing else is thrown
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
