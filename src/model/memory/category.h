// SPDX-License-Identifier: Apache-2.0
// Categories of device memory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock::model {

enum class Category : std::uint8_t {
  Weights,
  Gradients,
  Optimizer,      // f32 masters next to bf16 weights, and the moments
  Activations,    // records: saved between forward and backward
  WeightRecords,  // kept from the input backward to the weight backward
  KvGradients,    // accumulators of K and V gradients
  Logits,         // logits tiles, and the kept loss gradient
  Transient,      // freed within one action, and everything else
  Transfers,      // messages in flight or not yet used
  Copies,         // offload buffers; not counted by the allocator
};

inline constexpr std::array<std::string_view, 10> kCategoryNames{
    "weights",      "gradients", "optimizer", "activations", "weight_records",
    "kv_gradients", "logits",    "transient", "transfers",   "copies"};

inline constexpr auto kTensorCategories =
    static_cast<int>(Category::Copies);  // those of tensors come before it

constexpr std::string_view name_of(Category category) {
  return kCategoryNames[static_cast<std::size_t>(category)];
}

}  // namespace penstock::model
