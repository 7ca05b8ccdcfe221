// T5: an encoder and a decoder, or the encoder alone. Scores are not scaled. Where the head is the table of
// token embeddings, published code scales its input by 1 / sqrt(n_embd); files in the wild expect that it is
// not.
#include "model/arch/architecture.h"

namespace quipu {
namespace {

constexpr AttentionDescription kT5Attention = {
    .positions = PositionKind::relative, .qkv_bias = Presence::absent, .score_scale = ScoreScale::none};
constexpr FeedForwardDescription kT5FeedForward = {
    .gate = Presence::optional, .activation = Activation::gelu_tanh, .ungated_activation = Activation::relu};

}  // namespace

std::span<const Architecture> t5_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "t5",
          .paper = "Raffel et al. 2019, arXiv:1910.10683",
          .structure = Structure::encoder_decoder,
          .t5_names = true,
          .attention = kT5Attention,
          .feed_forward = kT5FeedForward,
      },
      {
          .name = "t5encoder",
          .paper = "Raffel et al. 2019, arXiv:1910.10683",
          .structure = Structure::encoder,
          .t5_names = true,
          .attention = kT5Attention,
          .feed_forward = kT5FeedForward,
          .head = {.logits = false},
      },
  };
  return kTable;
}

}  // namespace quipu
