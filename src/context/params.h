// What a context is made with, and the rules by which it is refused or adjusted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "context/pooling.h"
#include "model/hparams.h"
#include "quant/element_type.h"

namespace quipu {

struct ContextParams {
  std::uint32_t n_ctx = 512;        ///< cells of the memory; 0: the model's training length
  std::uint32_t n_batch = 2048;     ///< most tokens in a batch; 0: as n_ubatch
  std::uint32_t n_ubatch = 512;     ///< most tokens computed at once; 0: as n_batch
  std::uint32_t n_seq_max = 1;      ///< sequences, at most 256; 0: 1
  std::uint32_t n_outputs_max = 0;  ///< most output rows of a batch; 0, or for encoders: n_batch
  int n_threads = 4;                ///< for one token; 0 and below: as many as there are processors
  int n_threads_batch = 4;          ///< for several tokens; likewise
  ElementType type_k = ElementType::f16;
  ElementType type_v = ElementType::f16;
  /// There is one attention; `false` only refuses what other engines need this for.
  std::optional<bool> flash_attention = {};
  RopeOverrides rope = {};
  bool swa_full =
      true;  ///< layers with a sliding window remember everything, so that any removal is possible
  bool kv_unified = false;              ///< one capacity for all sequences, else n_ctx / n_seq_max for each
  bool embeddings = false;              ///< outputs have embeddings; every token is an output then
  std::optional<Pooling> pooling = {};  ///< of embeddings; unset: the model's, or none
  std::optional<bool> causal = {};      ///< unset: as the model was trained
  bool no_perf = true;                  ///< counters keep no times
  /// Asked before and during each micro-batch, from the thread that called decode; returning true stops the
  /// batch.
  std::function<bool()> abort = {};
};

/// Parameters without an open question, and what follows from them.
struct ResolvedParams : ContextParams {
  std::uint32_t n_ctx_seq = 0;  ///< room of one sequence
  Pooling resolved_pooling = Pooling::none;
  bool is_causal = true;
};

/// Error(invalid_argument) or Error(unsupported) naming the parameter and the value; adjustments are logged.
/// Sizes are rounded up to multiples of 256 first and capped afterwards, so whatever comes out can run.
ResolvedParams resolve_params(const ContextParams& params, const Hparams& hparams);

/// 0 and below: as many as there are processors. Error(invalid_argument) if there are too many.
int resolve_threads(std::string_view name, int n_threads);

}  // namespace quipu
