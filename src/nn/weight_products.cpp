// SPDX-License-Identifier: Apache-2.0
#include "nn/weight_products.h"

#include <utility>
#include <vector>

#include "nn/kernels/matmul.h"
#include "nn/kernels/profile.h"

namespace penstock::nn {
namespace {

// Returns whether the shared rows are gradients of the products' results; otherwise they are the inputs.
bool are_gradients(SharedRows rows) {
  return rows == SharedRows::Gradient || rows == SharedRows::MiddleGradient;
}

// Computes the products of all weights that read these rows.
void form_products(const DecoderLayer& layer, std::int64_t tokens, SharedRows number, WeightRecord& pending) {
  const auto index = static_cast<std::size_t>(number);
  if (pending.products[index].empty()) return;
  Rows blocks = std::move(pending.shared[index]);
  GatheredRows rows = std::move(pending.gathered[index]);
  std::vector<WeightRecord::Product> products = std::move(pending.products[index]);
  if (!rows.defined()) rows = layer.group->gather(blocks, tokens);
  const at::Tensor& shared = rows.whole();
  for (WeightRecord::Product& product : products) {
    at::Tensor own = std::move(product.own);
    const bool gradients = are_gradients(number);
    kernels::accumulate_weight_gradient(product.weight->gradient, gradients ? shared : own,
                                        gradients ? own : shared);
  }
}

}  // namespace

void form_feed_forward_products(const DecoderLayer& layer, std::int64_t tokens, WeightRecord& pending) {
  const BlockScope scope(Block::WeightGradients);
  std::vector<MixtureWeightRecord> mixtures = std::move(pending.mixtures);
  for (std::size_t i = 0; i < mixtures.size(); ++i)
    mixture_backward_weight(layer.shards[i].mixture, std::move(mixtures[i]));
  form_products(layer, tokens, SharedRows::Gradient, pending);
  form_products(layer, tokens, SharedRows::Norm2Output, pending);
}

void form_attention_products(const DecoderLayer& layer, std::int64_t tokens, WeightRecord& pending) {
  const BlockScope scope(Block::WeightGradients);
  form_products(layer, tokens, SharedRows::MiddleGradient, pending);
  form_products(layer, tokens, SharedRows::Norm1Output, pending);
}

}  // namespace penstock::nn
