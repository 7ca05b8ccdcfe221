#include "model/arch/blocks/ends.h"

#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/matmul.h"

namespace quipu {

Value token_embedding(GraphScope& scope) {
  const ModelWeights& weights = scope.weights;
  const Weight* table = weights.token_embd != nullptr ? weights.token_embd : weights.output.matrix;
  Value x = embed(scope.weight(table), scope.tokens, scope.embeddings, scope.hparams.token_scale);
  if (weights.token_types != nullptr) x = add_row(x, scope.weight(weights.token_types), 0);
  if (weights.position_embd != nullptr)
    x = add(x, look_up(scope.weight(weights.position_embd), scope.positions));
  if (scope.hparams.input_scale != 1) x = scale(x, scope.hparams.input_scale);
  x = scope.graph.label(x, "inp_embd");
  return weights.token_norm.exists() ? scope.graph.label(scope.norm(x, weights.token_norm), "inp_norm") : x;
}

Value logits_head(GraphScope& scope, Value x) {
  const LinearWeights& output = scope.weights.output;
  Value logits = scope.linear(
      x,
      {.matrix = output.matrix != nullptr ? output.matrix : scope.weights.token_embd, .bias = output.bias});
  if (scope.hparams.logit_scale != 1) logits = scale(logits, scope.hparams.logit_scale);
  const float cap = scope.hparams.final_soft_cap;
  return scope.graph.label(cap == 0 ? logits : soft_cap(logits, cap), "result_output");
}

Value embedding_head(GraphScope& scope, Value x) {
  if (scope.weights.dense_2.matrix != nullptr) x = scope.linear(x, scope.weights.dense_2);
  if (scope.weights.dense_3.matrix != nullptr) x = scope.linear(x, scope.weights.dense_3);
  return x;
}

}  // namespace quipu
