// SPDX-License-Identifier: Apache-2.0
// A weight with what training needs of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace penstock::nn {

// Tied embeddings exist on the first and on the last stage; each side accumulates into a gradient buffer of
// its own. The output side is named lm_head.weight, as an untied output matrix is.
enum class Replica : std::uint8_t {
  None,   // the parameter itself
  Copy,   // the output side of a tied embedding whose owner is another stage: same values, own tensors
  Alias,  // the same on the owner's own stage: weight and master are the owner's tensors, the gradient is its
          // own
};

// Tensors are contiguous, in Hugging Face's shapes (matrices are [out, in]).
struct Parameter {
  std::string name;     // Hugging Face's, as in "model.layers.3.self_attn.q_proj.weight"
  at::Tensor weight;    // what the products read: bf16, f32 or f64
  at::Tensor master;    // what the optimizer updates: f32 beside bf16 weights, else the weight itself
  at::Tensor gradient;  // f32 (f64 for f64 weights), sum over the step
  bool is_matrix = false;
  Replica replica = Replica::None;

  // Of a shard of a matrix (vocabulary parallelism): its rows but for the padding, which is zero and stays
  // so. The shards of the ranks, in their order, make up the whole matrix. -1: this is the whole parameter.
  std::int64_t own_rows = -1;
  std::int64_t first_row = 0;  // of its own rows, in the whole matrix

  bool is_shard() const { return own_rows >= 0; }

  // Without padding.
  at::Tensor unpadded(const at::Tensor& tensor) const {
    return own_rows < 0 ? tensor : tensor.narrow(0, 0, own_rows);
  }
};

}  // namespace penstock::nn
