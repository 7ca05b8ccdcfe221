// A conversation with the built-in model: one line in, an answer out, until the input ends.
#include <iostream>
#include <string>
#include <vector>

#include "quipu/quipu.h"

namespace {

class Chat {
 public:
  explicit Chat(const quipu::Model& model)
      : tokenizer_(model.tokenizer()), context_(model), sampler_(model.recommended_sampling()) {}

  // The context remembers what was said, so only the new lines are computed.
  void answer(const std::string& question) {
    std::vector<quipu::Token> tokens =
        tokenizer_.tokenize("<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n",
                            {.add_special = context_.max_position(0) < 0});
    quipu::TextStream text(tokenizer_);
    for (int i = 0; i < 100; ++i) {
      if (context_.decode(tokens) != quipu::DecodeResult::ok) {
        std::cout << "\n(The conversation does not fit any more: it begins anew.)\n";
        context_.clear();
        return;
      }
      const quipu::Token next = sampler_.sample(context_.logits(-1));
      sampler_.accept(next);
      if (tokenizer_.ends_generation(next)) break;
      std::cout << text.add(next) << std::flush;
      tokens = {next};
    }
    std::cout << text.finish() << '\n';
    // The model expects to see that its answer has ended.
    context_.decode(tokenizer_.tokenize("<|im_end|>\n", {.add_special = false}));
  }

 private:
  quipu::Tokenizer tokenizer_;
  quipu::Context context_;
  quipu::Sampler sampler_;
};

}  // namespace

int main() {
  try {
    Chat chat(quipu::Model::built_in());
    std::string line;
    while (std::cout << "> " << std::flush && std::getline(std::cin, line)) chat.answer(line);
    std::cout << '\n';
  } catch (const quipu::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
