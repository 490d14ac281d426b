// SPDX-License-Identifier: Apache-2.0
// One device's share of the embedding and of the output matrix under vocabulary parallelism (algorithms: "The
// output layer and the loss"; SlimPipe, SC'25; Yeung et al. 2024). Both matrices are padded to a multiple of
// the p devices and cut into equal blocks of rows; padding has no weight in a softmax and gets no gradient.
// Every device has the tokens of the step, so sender and receiver derive the rows of a message from them.
//
// One thread at a time. N = tokens of one slice of a micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "mesh/shard.h"
#include "model/shape.h"
#include "nn/parameter.h"

namespace penstock::nn {

struct VocabularyOptions {
  model::Shape shape;
  model::Precision precision = model::Precision::F32;
  std::uint64_t seed = 1;
  int rank = 0;
  int parts = 1;  // devices; device parts - 1 has the last stage, and the final norm
  std::int64_t loss_tile_tokens = 512;
  mesh::StateSharing sharing;  // with the other replicas
};

class VocabularyShard {
 public:
  explicit VocabularyShard(const VocabularyOptions& options);

  // In the model's order: embedding rows, final norm (last device), output rows. Stable addresses. Initial
  // values equal the whole matrices' rows. A tied output matrix is an alias with its own gradient.
  std::vector<Parameter>& parameters() { return parameters_; }

  const VocabularyOptions& options() const { return options_; }
  const mesh::Shard& shard() const { return shard_; }  // rows of the embedding and of the output matrix
  bool is_last() const { return options_.rank + 1 == options_.parts; }

  const Parameter& embedding() const { return parameters_.front(); }
  Parameter& output() { return parameters_.back(); }
  Parameter& final_norm() { return parameters_[1]; }

  // Indices of a device's tokens among tokens [N]; int64, ascending.
  at::Tensor places_of(int rank, const at::Tensor& tokens) const;

  // Embeddings of this device's tokens, in token order [k, h].
  at::Tensor embed(const at::Tensor& tokens) const;

  // Adds the gradient [k, h] of embed(tokens), in token order.
  void add_embedding_gradient(const at::Tensor& tokens, const at::Tensor& gradient);

  // Tied: replaces the own parts of both gradients by input side + output side. Once a step, before the
  // optimizer.
  void add_tied_gradients();

  void weights_from_masters();

 private:
  VocabularyOptions options_;
  mesh::Shard shard_;
  std::vector<Parameter> parameters_;
};

}  // namespace penstock::nn
