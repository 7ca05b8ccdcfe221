// What the context of an encoder-decoder model keeps of the batch that it encoded last: for each layer of the
// decoder the keys and values that cross-attention reads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "context/memory_setup.h"
#include "context/params.h"
#include "memory/memory.h"
#include "model/model.h"

namespace quipu {

class EncodedText {
 public:
  /// `layout`: ordinal of the layout through which the decoder sees it.
  EncodedText(const LoadedModel& model, const ResolvedParams& params, std::size_t layout);

  /// The encoder's own memory, which lives for a batch.
  Memory& encoder_memory() { return *encoder_.memory; }
  std::span<const GraphOptions::LayerCache> encoder_caches() const { return encoder_.caches; }
  /// As the encoder writes them, and as the decoder reads them.
  std::span<const GraphOptions::LayerCache> written_caches() const { return written_; }
  std::span<const GraphOptions::LayerCache> read_caches() const { return read_; }

  /// The encoder is at work (nothing is encoded), or has done it.
  void begin() { is_there_ = false; }
  void finish() { is_there_ = true; }
  /// Is there text of this sequence?
  bool has(SequenceId sequence) const;

  /// Which text the tokens of a micro-batch of the decoder look at.
  const AttentionLayout* look(const MemoryBatch& batch, std::span<const std::uint32_t> micro_batch);
  std::size_t bytes() const;

 private:
  MemorySetup encoder_;
  std::vector<std::unique_ptr<KvStorage>> storages_;
  std::vector<GraphOptions::LayerCache> written_, read_;
  bool is_there_ = false;
  AttentionLayout layout_;
};

}  // namespace quipu
