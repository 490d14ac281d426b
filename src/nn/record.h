// SPDX-License-Identifier: Apache-2.0
// Tensors kept between forward and backward, by name and layer. A policy (model/memory/policy.h) selects
// which stay; the backward recomputes the others with the forward's operations on the same values.
//
// N = b·T tokens of one slice of a micro-batch; a shard's own block of rows has n of them (tensor_group.h;
// n = N for a single shard). Heads and ffn columns are per shard. See model/shape.h for the other letters.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/memory/policy.h"
#include "nn/experts/mixture.h"
#include "nn/groups/tensor_group.h"
#include "nn/parameters/parameter.h"

namespace penstock::nn {

enum class Saved : std::uint8_t {
  LayerInput,       // [n, h]
  Norm1Scale,       // [n], accumulator type
  Norm1Output,      // [n, h], gathered for the query, key and value products
  QueryInput,       // [N, H·d], input of the head norms, if any
  QueryScale,       // [N·H], accumulator type
  KeyInput,         // [N, K·d], the same for keys
  KeyScale,         // [N·K]
  Query,            // [b, H, T, d], after the rotation
  Key,              // [b, K, T, d], after the rotation
  Value,            // [b, K, T, d], a view of the product's [N, K·d]
  AttentionOutput,  // [N, H·d], merged over all chunks; input of the output product
  LogSumExp,        // [b, H, T], accumulator type
  Norm2Input,       // [n, h], after the first residual
  Norm2Scale,       // [n]
  Norm2Output,      // [n, h], gathered for the gate and up products
  Gate,             // [N, f]
  Up,               // [N, f]
  Product,          // [N, f], silu(gate)·up, input of the down product
};
inline constexpr std::size_t kSavedCount = 18;

// Returns the policy's tensor that a saved tensor belongs to. Keys and values are one, and so are gate and
// up. A norm's scale belongs to its output, the log-sum-exp to the attention output, the head norms' inputs
// and scales to the queries.
model::SavedTensor part_of(Saved name);

// The tensors that one shard of a layer saves for one slice.
struct LayerRecord {
  std::array<at::Tensor, kSavedCount> tensors;

  MixtureRecord mixture;  // replaces Gate, Up and Product in layers with experts

  // Gradients of this slice's keys and values from later slices [b, K, T, d], accumulator type; undefined
  // before the first.
  at::Tensor key_gradient;
  at::Tensor value_gradient;

  at::Tensor& operator[](Saved name) { return tensors[static_cast<std::size_t>(name)]; }
  const at::Tensor& operator[](Saved name) const { return tensors[static_cast<std::size_t>(name)]; }
};

using LayerRecords = std::vector<LayerRecord>;  // one per shard of the rank

// Calls visit(part, kind, tensor) for every tensor saved for the backward; `part` is the policy's tensor that
// it belongs to.
enum class SavedKind : std::uint8_t { Numbers, Statistics };
template <class Record, class Visit>
void for_saved(Record& record, Visit&& visit) {
  const auto kind_of = [](Saved name) {
    const bool statistics = name == Saved::Norm1Scale || name == Saved::Norm2Scale ||
                            name == Saved::QueryScale || name == Saved::KeyScale || name == Saved::LogSumExp;
    return statistics ? SavedKind::Statistics : SavedKind::Numbers;
  };
  for (std::size_t i = 0; i < kSavedCount; ++i) {
    const auto name = static_cast<Saved>(i);
    visit(part_of(name), kind_of(name), record.tensors[i]);
  }
  using Part = model::SavedTensor;
  auto& mixture = record.mixture;
  for (auto* tensor :
       {&mixture.scores, &mixture.routing.experts, &mixture.routing.weights, &mixture.routing.log_sum_exp,
        &mixture.order.tokens, &mixture.order.places, &mixture.row_weights, &mixture.shared.weights})
    visit(Part::GateUp, SavedKind::Statistics, *tensor);
  visit(Part::Dispatched, SavedKind::Numbers, mixture.dispatched);
  visit(Part::GateUp, SavedKind::Numbers, mixture.gate);
  visit(Part::GateUp, SavedKind::Numbers, mixture.up);
  visit(Part::GateUp, SavedKind::Numbers, mixture.shared.gate);
  visit(Part::GateUp, SavedKind::Numbers, mixture.shared.up);
  visit(Part::Product, SavedKind::Numbers, mixture.product);
  visit(Part::Product, SavedKind::Numbers, mixture.shared.product);
}

// Rows that several weight products of a layer read, in the order of their first use.
enum class SharedRows : std::uint8_t {
  Gradient,        // gradient of the layer's output, which is down_proj's output gradient
  Norm2Output,     // input of gate_proj and up_proj
  MiddleGradient,  // gradient after attention's residual sum, o_proj's output gradient
  Norm1Output,     // input of q_proj, k_proj and v_proj
};
inline constexpr std::size_t kSharedRows = 4;

// The operands of one layer's weight gradients, grad_outputᵀ · input each. A shard keeps only its block of
// the shared rows; they are gathered for the products, unless they still are from the backward.
struct WeightRecord {
  struct Product {
    Parameter* weight = nullptr;
    at::Tensor own;  // [N, out] or [N, in], the shard's own operand
  };
  std::array<Rows, kSharedRows> shared;
  std::array<GatheredRows, kSharedRows> gathered;
  std::array<std::vector<Product>, kSharedRows> products;
  std::vector<MixtureWeightRecord> mixtures;  // one per shard, in layers with experts

  void keep(SharedRows rows, Rows blocks, GatheredRows all) {
    shared[static_cast<std::size_t>(rows)] = std::move(blocks);
    gathered[static_cast<std::size_t>(rows)] = std::move(all);
  }
  void add(SharedRows rows, Parameter* weight, at::Tensor own) {
    products[static_cast<std::size_t>(rows)].push_back({weight, std::move(own)});
  }
  // Frees the gathered rows; keeps the blocks.
  void end_gathered();
};

// Drops the tensors that are not in `keep`.
void drop_unless(model::KeepSet keep, LayerRecord& record);

// Appends the storages of a layer's record that can be offloaded, each once: all except the statistics (norm
// scales, log-sum-exp, routing) and, without `keys_and_values`, keys and values, which later slices read.
void append_leavable(const LayerRecord& record, bool keys_and_values, std::vector<c10::Storage>& storages);

// Counts the kept tensors as activations or weight records.
void recount(const LayerRecord& record);
void recount(const WeightRecord& record);

// Visits every tensor that a weight record keeps.
template <class Visit>
void for_tensors(const WeightRecord& record, Visit&& visit) {
  for (const Rows& rows : record.shared) {
    for (const at::Tensor& block : rows) visit(block);
  }
  for (const auto& products : record.products) {
    for (const WeightRecord::Product& product : products) visit(product.own);
  }
  for (const MixtureWeightRecord& mixture : record.mixtures) {
    for (const at::Tensor* tensor :
         {&mixture.input, &mixture.grad_scores, &mixture.dispatched, &mixture.grad_rows, &mixture.product,
          &mixture.grad_gate, &mixture.grad_up, &mixture.shared.grad_scores, &mixture.shared.grad_output,
          &mixture.shared.product, &mixture.shared.grad_gate, &mixture.shared.grad_up})
      visit(*tensor);
  }
}

// Bytes of the tensors' storages, counted once each: a view keeps all of its storage alive.
class StorageBytes {
 public:
  void add(const at::Tensor& tensor);  // undefined tensors and offloaded memory count as 0
  Bytes total() const { return total_; }

 private:
  std::unordered_set<const void*> seen_;
  Bytes total_ = 0;
};

}  // namespace penstock::nn
