// SPDX-License-Identifier: Apache-2.0
// The tensors a layer saves between forward and backward, and the others, which it recomputes
// (docs/memory.md, "Saved between F and B"). A policy is a set of tensors to keep. Any set with the layer's
// input is legal: the others can be recomputed from it, but it cannot be recomputed. The tensors are named
// only here; nn/record.h lists the finer tensors that belong to each.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/options.h"
#include "model/shape.h"

namespace penstock::model {

enum class SavedTensor : std::uint8_t {
  LayerInput,       // also norm 1's input
  NormOneOutput,    // input of Q, K, V
  Query,            // after the rotation; also the inputs of head norms, for queries and keys
  KeyValue,         // both; always kept with slices, as the cache
  AttentionOutput,  // input of O
  NormTwoInput,     // after the residual
  NormTwoOutput,    // input of gate and up
  Dispatched,       // input of the experts' gate and up, one row per expert of a token
  GateUp,           // output of fc1; with experts also their routing
  SiluGate,         // kept only by ATC'24's engine
  Product,          // input of down
};
inline constexpr std::size_t kSavedTensors = 11;
inline constexpr std::array<std::string_view, kSavedTensors> kSavedTensorNames{
    "layer_input",  "norm1_output", "q",   "kv",   "attention_output", "norm2_input",
    "norm2_output", "dispatched",   "fc1", "silu", "product"};

struct KeepSet {
  std::uint16_t bits = 0;

  constexpr bool has(SavedTensor tensor) const { return bits >> static_cast<int>(tensor) & 1; }
  constexpr KeepSet with(SavedTensor tensor) const {
    return {static_cast<std::uint16_t>(bits | 1u << static_cast<int>(tensor))};
  }
  constexpr KeepSet without(SavedTensor tensor) const {
    return {static_cast<std::uint16_t>(bits & ~(1u << static_cast<int>(tensor)))};
  }
  constexpr KeepSet common(KeepSet other) const { return {static_cast<std::uint16_t>(bits & other.bits)}; }
  friend constexpr bool operator==(KeepSet, KeepSet) = default;
};

// The tensors that tensor parallelism splits by tokens; it splits the others by heads or ffn columns. Experts
// are whole and work on a rank's own tokens.
constexpr KeepSet cut_by_tokens(const Shape& shape) {
  using T = SavedTensor;
  const KeepSet hidden =
      KeepSet{}.with(T::LayerInput).with(T::NormOneOutput).with(T::NormTwoInput).with(T::NormTwoOutput);
  if (shape.experts == 1) return hidden;
  return hidden.with(T::Dispatched).with(T::GateUp).with(T::SiluGate).with(T::Product);
}
constexpr KeepSet cut_by_width(const Shape& shape) {
  return {static_cast<std::uint16_t>(~cut_by_tokens(shape).bits)};
}

// The presets, from most memory to least. `Engine24` is ATC'24's "no recomputation", which also keeps
// silu(gate).
enum class Policy : std::uint8_t { Engine24, None, Balanced, BalancedFc1, Full };
inline constexpr std::array<std::string_view, 5> kPolicyNames{"none+silu", "none", "balanced", "balanced+fc1",
                                                              "full"};

constexpr std::string_view name_of(Policy policy) { return kPolicyNames[static_cast<std::size_t>(policy)]; }
Policy parse_policy(std::string_view name);  // InputError names the nearest
KeepSet keep_of(Policy policy);

// The set of the given names. Throws InputError for unknown names (with the nearest), duplicates, "silu",
// which our engine never computes, and sets without the layer's input.
KeepSet parse_keep(const Words& names, std::string_view option = "memory.keep");

// Prints a preset's name, or tensor names joined by "+" ("layer_input+q+kv"); parses it with the same errors.
std::string policy_text(KeepSet keep);
KeepSet parse_policy_text(std::string_view text, std::string_view option);

// Elements per token, before dividing by t·c.
std::int64_t numbers_per_token(const Shape& shape, SavedTensor tensor);

// Bytes per token of one layer, before dividing by t·c: of the kept tensors, and of the recomputed ones. With
// `keys_cached`, K and V count as kept in both (with slices they stay as the cache).
Bytes kept_bytes(const Shape& shape, KeepSet keep, Bytes element, bool keys_cached = false);
Bytes recomputed_bytes(const Shape& shape, KeepSet keep, Bytes element, bool keys_cached = false);

// Bytes per token of those operands of weight products (inputs and gradients) that correspond to `part`.
Bytes weight_record_bytes(const Shape& shape, KeepSet part, Bytes element, Bytes accumulator);

// K and V only.
Bytes key_value_bytes(const Shape& shape, Bytes element);

// Bytes per token of one layer of the statistics kept with a tensor, in the accumulator type: a norm's scale
// with its output, the log-sum-exp (one per head) with the attention output, the head norms' scales with the
// queries. With fc1, the experts' routing: scores and their log-sum-exp; for each of a token's experts three
// int64 (expert, row, the row's token) and its weight by slot and by row; and a shared expert's weight.
Bytes statistics_bytes(const Shape& shape, KeepSet keep, Bytes accumulator);

}  // namespace penstock::model
