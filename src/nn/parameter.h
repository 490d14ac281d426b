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
// Tied embeddings exist on the first and on the last stage, or on every device under vocabulary parallelism;
// each side has its own gradient. The output side is named lm_head.weight, as an untied output matrix. On the
// stage of the input side its weight and master are the embedding's tensors.
struct Parameter {
  std::string name;     // Hugging Face's, as in "model.layers.3.self_attn.q_proj.weight"
  at::Tensor weight;    // read by the products: bf16, f32 or f64
  at::Tensor master;    // updated by the optimizer: f32 for bf16 weights, else the weight itself
  at::Tensor gradient;  // f32 (f64 for f64 weights), sum over the step
  bool is_matrix = false;
  bool tied = false;                // the output side of tied embeddings: always a copy, never the owner
  std::vector<std::int64_t> sizes;  // of the whole tensor
  mesh::Shard shard;                // the part on this rank

  // Without padding.
  at::Tensor unpadded(const at::Tensor& tensor) const {
    return shard.count == shard.held ? tensor : tensor.narrow(shard.dimension, 0, shard.count);
  }
};

// Of the ranks with the same part one owns it: it writes the part to files and adds it to sums over all
// parameters.
inline bool owns(const Parameter& parameter) { return parameter.shard.copy == 0; }

}  // namespace penstock::nn
