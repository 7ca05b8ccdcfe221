// One beginning, several continuations: sequences share what they have in common, and each step computes one
// token of all of them in one batch.
#include <cstdio>
#include <string>
#include <vector>

#include "quipu/quipu.h"

namespace {

constexpr quipu::SequenceId kStories = 4;

struct Story {
  quipu::Sequence sequence;
  quipu::Sampler sampler;
  std::string text;
  quipu::Token next = quipu::kNoToken;
  bool ended = false;
};

void tell(const quipu::Model& model, const std::string& beginning) {
  const quipu::Tokenizer tokenizer = model.tokenizer();
  quipu::ContextOptions options;
  options.n_seq_max = kStories;
  options.kv_unified = true;  // one room for all
  quipu::Context context(model, options);

  // The beginning is computed once; the others share it.
  const std::vector<quipu::Token> tokens = tokenizer.tokenize(beginning);
  const quipu::Sequence first(context, 0);
  first.decode(tokens);
  std::vector<Story> stories;
  for (quipu::SequenceId s = 0; s < kStories; ++s) {
    if (s > 0) first.copy_to(s);
    quipu::SamplingOptions sampling = model.recommended_sampling();
    sampling.seed = static_cast<std::uint64_t>(s);
    stories.push_back({quipu::Sequence(context, s), quipu::Sampler(sampling), beginning});
    stories.back().next = stories.back().sampler.sample(context.logits(-1));
  }

  for (int step = 0; step < 40; ++step) {
    quipu::Batch batch;
    std::vector<Story*> in_batch;
    for (Story& story : stories) {
      if (story.ended || tokenizer.ends_generation(story.next)) {
        story.ended = true;
        continue;
      }
      story.text += tokenizer.piece(story.next);
      batch.add(story.next, story.sequence.end(), {story.sequence.id()}, true);
      in_batch.push_back(&story);
    }
    if (batch.empty() || context.decode(batch) != quipu::DecodeResult::ok) break;
    for (std::size_t i = 0; i < in_batch.size(); ++i) {
      in_batch[i]->next = in_batch[i]->sampler.sample(context.logits(static_cast<std::ptrdiff_t>(i)));
    }
  }
  for (const Story& story : stories) std::printf("- %s\n", story.text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    tell(quipu::Model::built_in(), argc > 1 ? argv[1] : "Once upon a time there was a");
  } catch (const quipu::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
