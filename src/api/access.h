// The way into the public handles: makes them from, and finds in them, the objects of the layers below.
#pragma once

#include <memory>
#include <utility>

#include "gguf/metadata.h"
#include "quipu/metadata.h"
#include "quipu/model.h"
#include "quipu/thread_pool.h"
#include "quipu/tokenizer.h"
#include "vocab/vocab.h"

namespace quipu {

class LoadedModel;

struct ApiAccess {
  static Metadata metadata(std::shared_ptr<const gguf::Metadata> entries) {
    return Metadata(std::move(entries));
  }
  static Tokenizer tokenizer(const Vocab& vocab) { return Tokenizer(std::make_shared<const Vocab>(vocab)); }
  static const Vocab& vocab(const Tokenizer& tokenizer) { return *tokenizer.vocab_; }
  static std::shared_ptr<const LoadedModel> loaded(const Model& model);
  static std::shared_ptr<WorkerPool> workers(const ThreadPool& pool) { return pool.workers_; }
};

}  // namespace quipu
