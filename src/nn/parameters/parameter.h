// SPDX-License-Identifier: Apache-2.0
// A weight with its training state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "mesh/shard.h"

namespace penstock::nn {

// Tensors are contiguous, in Hugging Face's shapes (matrices are [out, in]), with the rows or columns of
// `shard`; padding is zero and stays zero.
//
// A replica has masters and moments only for its share of the elements (docs/mesh.md, "Replicas"): `master`
// is then flat, [share().count]. A gather brings the other replicas' updates into `weight`.
//
// Tied embeddings exist on the first and on the last stage, or on every device under vocabulary parallelism;
// each side has its own gradient. The output side is named lm_head.weight, like an untied output matrix. On
// the stage of the input side its weight and master are the embedding's tensors.
struct Parameter {
  std::string name;   // Hugging Face's, e.g. "model.layers.3.self_attn.q_proj.weight"
  at::Tensor weight;  // read by the products: bf16, f32 or f64; undefined while a sharded weight is released
  // Updated by the optimizer: a separate tensor for bf16 (in f32) or sharded weights, else the weight itself
  // (its part, if shared).
  at::Tensor master;
  at::Tensor gradient;  // f32 (f64 for f64 weights), sum over the step; undefined with the weight
  bool is_matrix = false;
  bool tied = false;                // the output side of tied embeddings: always a copy, never the owner
  std::vector<std::int64_t> sizes;  // of the whole tensor
  mesh::Shard shard;                // the part on this rank, with its padding
  mesh::StateSharding sharding;     // of this part, with other replicas

  // Sizes on this rank, and their product.
  std::vector<std::int64_t> held_sizes() const;
  std::int64_t elements() const;

  // The flat elements that this rank updates.
  mesh::Shard share() const { return mesh::state_share(elements(), sharding); }
  // That part, flat, of a tensor of the held sizes or of one that already is the part; the tensor itself if
  // nothing is shared.
  at::Tensor own_part(const at::Tensor& tensor) const;

  // The flat elements that this rank alone writes to files and adds to sums over all parameters; and that
  // part of a tensor of the master's size, flat.
  mesh::Shard written() const;
  at::Tensor written_part(const at::Tensor& own) const;
};

// Copies the master into the own part of the weight. No-op if they are one tensor, or while the weight is
// undefined.
void weight_from_master(Parameter& parameter);

// How replicas keep the states of a stage's parameters.
struct StateLayout {
  mesh::StateSharding sharding;
  bool sharded_weights = false;  // weights and gradients exist only while in use; undefined at first
};

}  // namespace penstock::nn
