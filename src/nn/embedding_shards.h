// SPDX-License-Identifier: Apache-2.0
// The embedding of a slice, with the table's rows split over a tensor group (docs/mesh.md, "Tensor ranks"):
// every rank looks up the tokens that its shards hold, and a scatter sends each row to the shard that owns
// its token.
#pragma once

#include <vector>

#include "nn/groups/tensor_group.h"
#include "nn/parameters/parameter.h"

namespace penstock::nn {

struct EmbeddingShards {
  std::vector<Parameter*> own;  // the table's rows, one per own shard
  TensorGroup* group = nullptr;

  // tokens [N] int64, the same on every rank → each own shard's rows [n, h].
  Rows embed(const at::Tensor& tokens) const;

  // Adds the gradient of embed(tokens).
  void add_gradient(const Rows& gradient, const at::Tensor& tokens) const;
};

}  // namespace penstock::nn
