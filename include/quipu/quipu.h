// The C++ interface in one include.
//
//   quipu::Model model = quipu::Model::load("model.gguf");
//   quipu::Context context(model);
//   quipu::Sampler sampler(model.recommended_sampling());
//   std::vector<quipu::Token> tokens = model.tokenizer().tokenize("Once upon a time");
//   context.decode(tokens);
//   quipu::Token next = sampler.sample(context.logits(-1));
//
// Whatever fails throws quipu::Error and nothing else.
#pragma once

#include "quipu/architectures.h"
#include "quipu/batch.h"
#include "quipu/chat.h"
#include "quipu/context.h"
#include "quipu/cpu.h"
#include "quipu/error.h"
#include "quipu/log.h"
#include "quipu/metadata.h"
#include "quipu/model.h"
#include "quipu/observer.h"
#include "quipu/sampler.h"
#include "quipu/sequence.h"
#include "quipu/thread_pool.h"
#include "quipu/tokenizer.h"
#include "quipu/types.h"
#include "quipu/version.h"
