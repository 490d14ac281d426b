// SPDX-License-Identifier: Apache-2.0
// Tensors kept between forward and backward, by name and layer. A policy (model/memory_policy.h) selects
// which stay; the backward recomputes the others by the forward's operations on the same values.
//
// N = b·T tokens of one slice of a micro-batch; see model/shape.h for the other letters.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <unordered_set>
#include <vector>

#include "base/units.h"
#include "model/memory/policy.h"
#include "nn/parameter.h"

namespace penstock::nn {

enum class Saved : std::uint8_t {
  LayerInput,       // [N, h]
  Norm1Scale,       // [N], accumulator type
  Norm1Output,      // [N, h], input of the query, key and value products
  Query,            // [b, H, T, d], after the rotation
  Key,              // [b, K, T, d], after the rotation
  Value,            // [b, K, T, d], a view of the product's [N, K·d]
  AttentionOutput,  // [N, H·d], merged over all chunks; input of the output product
  LogSumExp,        // [b, H, T], accumulator type
  Norm2Input,       // [N, h], after the first residual
  Norm2Scale,       // [N]
  Norm2Output,      // [N, h], input of the gate and up products
  Gate,             // [N, f]
  Up,               // [N, f]
  Product,          // [N, f], silu(gate)·up, input of the down product
};
inline constexpr std::size_t kSavedCount = 14;

// The policy's tensor that each belongs to: keys and values are one, as are gate and up; a norm's scale stays
// with its output, the log-sum-exp with the attention output.
model::SavedTensor part_of(Saved name);

// The tensors one layer saves for one slice.
struct LayerRecord {
  std::array<at::Tensor, kSavedCount> tensors;

  // Gradients of this slice's keys and values from later slices [b, K, T, d], accumulator type; undefined
  // before the first.
  at::Tensor key_gradient;
  at::Tensor value_gradient;

  at::Tensor& operator[](Saved name) { return tensors[static_cast<std::size_t>(name)]; }
  const at::Tensor& operator[](Saved name) const { return tensors[static_cast<std::size_t>(name)]; }
};

// A weight gradient to compute later: weight.gradient += grad_outputᵀ · input.
struct PendingProduct {
  Parameter* weight;
  at::Tensor grad_output;  // [N, out]
  at::Tensor input;        // [N, in]
};
using WeightRecord = std::vector<PendingProduct>;

// Drops the tensors that `keep` lacks.
void drop_unless(model::KeepSet keep, LayerRecord& record);

// The storages of a layer's record that can be offloaded, each once: all but the statistics (norms' scales,
// log-sum-exp), and no keys and values that later slices read.
void append_leavable(const LayerRecord& record, bool keys_and_values, std::vector<c10::Storage>& storages);

// Accounts the kept tensors as activations or weight records.
void recount(const LayerRecord& record);
void recount(const WeightRecord& record);

// Bytes of the tensors' storages, each storage once: a view pins all of its storage.
class StorageBytes {
 public:
  void add(const at::Tensor& tensor);  // undefined tensors and memory that is away count as 0
  Bytes total() const { return total_; }

 private:
  std::unordered_set<const void*> seen_;
  Bytes total_ = 0;
};

}  // namespace penstock::nn
