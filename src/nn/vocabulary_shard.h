// SPDX-License-Identifier: Apache-2.0
// One rank's part of the embedding and of the output matrix under vocabulary parallelism (docs/slimpipe.md,
// "The vocabulary over all devices"; SlimPipe, SC'25; Yeung et al. 2024). Both matrices are padded to a
// multiple of the T·p shards of a pipeline and cut into equal blocks of rows; padding has no weight in a
// softmax and gets no gradient. A rank has the T/t consecutive shards of its place in the tensor group, each
// with its own parameters. Every rank has the tokens of the step, so sender and receiver derive the rows of a
// message from them.
//
// One thread at a time. N = tokens of one slice of a micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.h"
#include "mesh/shard.h"
#include "model/shape.h"
#include "nn/groups/tensor_group.h"
#include "nn/parameters/parameter.h"
#include "nn/vocabulary_visit.h"

namespace penstock::nn {

struct VocabularyOptions {
  model::Shape shape;
  model::Precision precision = model::Precision::F32;
  std::uint64_t seed = 1;
  int device = 0;
  int devices = 1;  // of the pipeline; the last one has the last stage and the final norm
  TensorGroup* group = nullptr;
  std::int64_t loss_tile_tokens = model::usual_loss_tile(false);
  mesh::StateSharding sharding;  // with the other replicas
};

class VocabularyShard {
 public:
  explicit VocabularyShard(const VocabularyOptions& options);

  // Shard after shard: embedding rows, final norm (last device), output rows. Stable addresses. Initial
  // values equal the whole matrices' rows. A tied output matrix is an alias with its own gradient.
  std::vector<Parameter>& parameters() { return parameters_; }

  bool is_last() const { return options_.device + 1 == options_.devices; }
  std::int64_t hidden() const { return options_.shape.hidden; }

  // Returns the output layer for a visit by `ranks`, all ranks of the pipeline (vocabulary_visit.h). `ranks`
  // must outlive it.
  OutputShards output(comm::Communicator& ranks);

  // Below, tokens are in host memory and results on the compute device.

  // Indices into tokens [N] of those whose rows `device` holds, on its rank at this rank's place in the
  // tensor group; int64, ascending.
  at::Tensor places_of(int device, const at::Tensor& tokens) const;

  // Embeddings of this rank's tokens, in token order [k, h].
  at::Tensor embed(const at::Tensor& tokens) const;

  // Adds the gradient [k, h] of embed(tokens), in token order.
  void add_embedding_gradient(const at::Tensor& tokens, const at::Tensor& gradient);

  // For tied embeddings: replaces the own parts of both gradients with input side + output side. Call once a
  // step, before the optimizer.
  void add_tied_gradients();

  void weights_from_masters();

 private:
  at::Tensor own_tokens(const at::Tensor& tokens) const;  // on the compute device
  std::size_t per_shard() const { return is_last() ? 3 : 2; }
  Parameter& embedding(int own_index) { return parameters_[per_shard() * own_index]; }
  const Parameter& embedding(int own_index) const { return parameters_[per_shard() * own_index]; }
  Parameter& output(int own_index) { return parameters_[per_shard() * (own_index + 1) - 1]; }

  VocabularyOptions options_;
  std::vector<Parameter> parameters_;
};

}  // namespace penstock::nn
