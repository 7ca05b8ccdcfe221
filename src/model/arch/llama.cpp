// Llama, and models that differ from it in little.
#include "model/arch/architecture.h"

namespace quipu {
namespace {

constexpr AttentionDescription kLlamaAttention = {
    .rope = RopeStyle::interleaved, .rope_factors = true, .output_bias = Presence::optional};
constexpr FeedForwardDescription kLlamaFeedForward = {.up_bias = Presence::optional,
                                                      .down_bias = Presence::optional};

/// The model of 128 experts was published without norms of queries and keys, which no key says.
void leave_llama4_queries(const gguf::Metadata&, Hparams& hparams) {
  if (hparams.experts.n_experts == 128) hparams.plain_qk_norms = false;
}

/// The model of 7B rotates, that of 13B has ALiBi; their numbers of layers tell them apart. Others have
/// neither.
void tell_baichuan(const gguf::Metadata&, Hparams& hparams) {
  if (hparams.n_layers() == 40) hparams.max_alibi_bias = 8;
  for (LayerHparams& layer : hparams.layers) layer.rotates = hparams.n_layers() == 32;
}

/// Only the 32B model, of 64 layers, has windows, and layers that do not rotate.
void tell_exaone4(const gguf::Metadata&, Hparams& hparams) {
  if (hparams.n_layers() == 64) return;
  for (LayerHparams& layer : hparams.layers) {
    layer.window = 0;
    layer.local_rope = false;
    layer.rotates = true;
  }
}

}  // namespace

std::span<const Architecture> llama_architectures() {
  // What images go through instead.
  static constexpr std::string_view kCogVlmVision[] = {"vis_attn_qkv.weight", "vis_attn_output.weight",
                                                       "vis_gate.weight", "vis_up.weight", "vis_down.weight"};
  static constexpr Architecture kTable[] = {
      {
          .name = "llama",
          .paper = "Touvron et al. 2023, arXiv:2302.13971; Mixtral: Jiang et al. 2024, arXiv:2401.04088",
          .attention = kLlamaAttention,
          .feed_forward = kLlamaFeedForward,
          .experts = {.available = true},
      },
      {
          .name = "llama-embed",
          .paper = "BehnamGhader et al. 2024, arXiv:2404.05961",
          .structure = Structure::encoder,
          .attention = kLlamaAttention,
          .feed_forward = kLlamaFeedForward,
          .experts = {.available = true},
          .head = {.logits = false},
      },
      {
          .name = "deci",
          .paper = "Bercovich et al. 2024, arXiv:2411.19146",
          .layers_lack_blocks = true,
          .attention = kLlamaAttention,
          .feed_forward = kLlamaFeedForward,
      },
      {
          .name = "mistral3",
          .paper = "Mistral AI 2025, https://huggingface.co/mistralai/Mistral-Small-3.1-24B-Instruct-2503",
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_factors = true,
                        .yarn_log_multiplier = YarnLogMultiplier::divisor,
                        .output_bias = Presence::optional,
                        .temperature = {.keys = true}},
          .feed_forward = kLlamaFeedForward,
          .experts = {.available = true},
      },
      {
          .name = "smollm3",
          .paper = "Hugging Face 2025, SmolLM3: smol, multilingual, long-context reasoner",
          .attention = {.rope = RopeStyle::interleaved, .unrotated = {.period = 4}},
      },
      {
          .name = "maincoder",
          .paper = "Maincode 2025, https://huggingface.co/Maincode/Maincoder-1B",
          .attention = {.rope = RopeStyle::interleaved, .qk_norm = QkNorm::heads, .norm_after_rope = true},
      },
      {
          .name = "hunyuan-dense",
          .paper = "Tencent 2025, https://huggingface.co/tencent/Hunyuan-7B-Instruct",
          .attention = {.qk_norm = QkNorm::heads, .norm_after_rope = true},
      },
      {
          .name = "hunyuan_vl",
          .paper = "Tencent 2025, https://huggingface.co/tencent/HunyuanOCR",
          .attention = {.rope_sections = RopeSections::blocks,
                        .qk_norm = QkNorm::heads,
                        .norm_after_rope = true},
      },
      {
          .name = "talkie",
          .paper = "Radford et al. 2026, https://huggingface.co/talkie-lm/talkie-1930-13b-it",
          .norm = {.weights = false},
          .scales = {.logit_key = ScaleDescription::LogitKey::multiplies},
          .embedding = {.norm = true, .skip = true},
          .attention = {.qk_norm = QkNorm::gains, .norm_after_rope = true},
      },
      {
          .name = "apertus",
          .paper = "Project Apertus 2025, arXiv:2509.14233",
          .attention = {.rope_factors = true, .qk_norm = QkNorm::heads, .output_bias = Presence::optional},
          .feed_forward = {.gate = Presence::absent, .xielu = true},
      },
      {
          .name = "baichuan",
          .paper = "Yang et al. 2023, arXiv:2309.10305",
          .attention = {.rope = RopeStyle::interleaved},
          .adjust = tell_baichuan,
      },
      {
          .name = "plm",
          .paper = "Deng et al. 2025, arXiv:2503.12167",
          .attention = {.kind = AttentionKind::latent,
                        .rope = RopeStyle::interleaved,
                        .compressed_queries = false},
          .feed_forward = {.gate = Presence::absent, .ungated_activation = Activation::relu_squared},
      },
      {
          .name = "plamo3",
          .paper = "Preferred Networks 2025, https://huggingface.co/pfnet/plamo-3-nict-8b-base",
          .norm = {.placement = NormPlacement::around},
          .attention =
              {.qk_norm = QkNorm::heads,
               .windows = {.period = 8, .required = false, .local_rope_base = 0, .local_rope_scaled = true}},
          .feed_forward = {.gate = Presence::absent, .gate_in_up = Presence::required},
          .names = {.other_attn_post_norm = "post_attention_norm", .other_ffn_post_norm = "post_ffw_norm"},
      },
      {
          .name = "exaone4",
          .paper = "LG AI Research 2025, arXiv:2507.11407",
          .norm = {.placement = NormPlacement::after},
          .attention = {.rope_factors = true,
                        .qk_norm = QkNorm::heads,
                        .windows = {.period = 4,
                                    .required = false,
                                    .default_size = 4096,
                                    .local_rope_base = 0,
                                    .local_rope_scaled = true},
                        .unrotated = {.without_window = true}},
          .adjust = tell_exaone4,
      },
      {
          .name = "mellum",
          .paper = "JetBrains 2026, https://huggingface.co/JetBrains",
          .attention = {.qk_norm = QkNorm::heads,
                        .windows = {.period = 4, .required = false, .local_rope_base = 0}},
          .experts = {.available = true, .own_width = true},
      },
      {
          .name = "nanbeige",
          .paper = "Nanbeige Lab 2026, https://huggingface.co/Nanbeige",
          .loops = true,
          .attention = {.rope = RopeStyle::interleaved, .rope_factors = true},
      },
      {
          .name = "llada",
          .paper = "Nie et al. 2025, arXiv:2502.09992",
          .never_causal = true,
          .attention = {.rope = RopeStyle::interleaved},
      },
      {
          .name = "xverse",
          .paper = "XVERSE Technology 2023, https://github.com/xverse-ai/XVERSE-13B",
          .attention = {.rope = RopeStyle::interleaved},
      },
      {
          .name = "internlm2",
          .paper = "Cai et al. 2024, arXiv:2403.17297",
          .attention = {.rope = RopeStyle::interleaved},
      },
      {
          .name = "orion",
          .paper = "Chen et al. 2024, arXiv:2401.12246",
          .norm = {.kind = NormKind::layer, .bias = Presence::required},
      },
      {
          .name = "refact",
          .paper = "Refact 2023, https://huggingface.co/smallcloudai/Refact-1_6B-fim",
          .attention = {.positions = PositionKind::alibi, .max_alibi_bias = 8},
      },
      {
          .name = "plamo",
          .paper = "Preferred Networks 2023, https://huggingface.co/pfnet/plamo-13b",
          .norm = {.feed_forward = Presence::absent},
      },
      {
          .name = "arcee",
          .paper = "Arcee AI 2025, https://huggingface.co/arcee-ai/AFM-4.5B",
          .attention = {.rope = RopeStyle::interleaved, .rope_factors = true},
          .feed_forward = {.gate = Presence::absent, .ungated_activation = Activation::relu_squared},
      },
      {
          .name = "exaone",
          .paper = "LG AI Research 2024, arXiv:2408.03541",
          .attention = {.rope_factors = true},
      },
      {
          .name = "pangu-embedded",
          .paper = "Chen et al. 2025, arXiv:2505.22375",
          .attention = {.output_bias = Presence::required},
      },
      {
          .name = "seed_oss",
          .paper = "ByteDance Seed 2025, https://github.com/ByteDance-Seed/seed-oss",
          .names = {.ffn_norm = "post_attention_norm"},
      },
      {
          .name = "ernie4_5",
          .paper = "Baidu ERNIE Team 2025, ERNIE 4.5 Technical Report",
          .attention = {.rope = RopeStyle::interleaved},
      },
      {
          .name = "paddleocr",
          .paper = "Cui et al. 2025, arXiv:2510.14528",
          .attention = {.rope_sections = RopeSections::blocks, .output_bias = Presence::optional},
      },
      {
          .name = "bitnet",
          .paper = "Wang et al. 2023, arXiv:2310.11453; Ma et al. 2024, arXiv:2402.17764",
          .matrix_scales = true,
          .norm = {.sub = true},
      },
      {
          .name = "cogvlm",
          .paper = "Wang et al. 2023, arXiv:2311.03079",
          .attention = {.qkv_bias = Presence::absent, .square_qkv = true, .thirds_of_qkv = true},
          .unused_tensors = kCogVlmVision,
      },
      {
          .name = "llama4",
          .paper = "Meta AI 2025, https://ai.meta.com/blog/llama-4-multimodal-intelligence",
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_factors = true,
                        .qk_norm = QkNorm::plain,
                        .norm_after_rope = true,
                        .windows = {.period = 4,
                                    .required = false,
                                    .default_size = 8192,
                                    .size = 8192,
                                    .chunked = true,
                                    .local_rope_base = 0,
                                    .local_rope_scaled = true},
                        .unrotated = {.period = 4, .with_windows = true},
                        .temperature = {.unrotated = true, .scale = 0.1f, .length = 8192, .offset = 1}},
          .experts = {.available = true,
                      .gating = ExpertGating::sigmoid,
                      .normalize_weights = false,
                      .own_width = true,
                      .step_key = true,
                      .shared = SharedExperts::one,
                      .weigh_input = true},
          .adjust = leave_llama4_queries,
      },
  };
  return kTable;
}

}  // namespace quipu
