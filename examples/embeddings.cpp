// How alike are texts? Their embeddings, compared by the cosine of the angle between them.
// embeddings [MODEL.gguf]
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "quipu/quipu.h"

namespace {

using Vector = std::vector<float>;

float cosine(const Vector& a, const Vector& b) {
  float ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

// One batch for all texts, each a sequence of its own.
std::vector<Vector> embed(const quipu::Model& model, const std::vector<std::string>& texts) {
  quipu::ContextOptions options;
  options.embeddings = true;
  if (model.has_decoder()) options.pooling = quipu::Pooling::mean;  // else as the model was trained
  options.n_seq_max = static_cast<std::uint32_t>(texts.size());
  options.n_ctx = 256 * options.n_seq_max;
  quipu::Context context(model, options);

  quipu::Batch batch;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    batch.append(model.tokenizer().tokenize(texts[i]), 0, static_cast<quipu::SequenceId>(i));
  }
  context.decode(batch);

  std::vector<Vector> vectors;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto row = context.sequence_embedding(static_cast<quipu::SequenceId>(i));
    vectors.emplace_back(row.begin(), row.end());
  }
  return vectors;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> texts = {"The dog ran over the green grass.",
                                          "A little dog played in the grass.", "Two and two is four."};
  try {
    const quipu::Model model = argc > 1 ? quipu::Model::load(argv[1]) : quipu::Model::built_in();
    const std::vector<Vector> vectors = embed(model, texts);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      for (const Vector& other : vectors)
        std::printf("%6.3f ", static_cast<double>(cosine(vectors[i], other)));
      std::printf(" %s\n", texts[i].c_str());
    }
  } catch (const quipu::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
