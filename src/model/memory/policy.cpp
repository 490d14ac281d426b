// SPDX-License-Identifier: Apache-2.0
#include "model/memory/policy.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace penstock::model {
namespace {

constexpr KeepSet set_of(std::initializer_list<SavedTensor> tensors) {
  KeepSet set;
  for (const SavedTensor tensor : tensors) set = set.with(tensor);
  return set;
}

constexpr KeepSet kFull = set_of({SavedTensor::LayerInput});
constexpr KeepSet kBalancedFc1 = set_of({SavedTensor::LayerInput, SavedTensor::Query, SavedTensor::KeyValue,
                                         SavedTensor::AttentionOutput, SavedTensor::NormTwoInput});
constexpr KeepSet kBalanced = kBalancedFc1.with(SavedTensor::GateUp).with(SavedTensor::Dispatched);
constexpr KeepSet kNone =
    kBalanced.with(SavedTensor::NormOneOutput).with(SavedTensor::NormTwoOutput).with(SavedTensor::Product);
constexpr std::array kKeepOfPolicy{kNone.with(SavedTensor::SiluGate), kNone, kBalanced, kBalancedFc1, kFull};

// The names without "silu", which is rejected.
template <std::size_t N>
std::vector<std::string_view> offered(const std::array<std::string_view, N>& names) {
  std::vector<std::string_view> offered(names.begin(), names.end());
  std::erase(offered, "silu");
  return offered;
}

template <std::size_t N>
std::size_t index_of(std::string_view name, const std::array<std::string_view, N>& names,
                     std::string_view option) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  throw InputError(std::string(option) + " \"" + printable(name) + "\" is unknown" +
                   instead_of(name, offered(names)));
}

KeepSet add_named(KeepSet keep, std::string_view name, std::string_view option) {
  const auto tensor = static_cast<SavedTensor>(index_of(name, kSavedTensorNames, option));
  if (tensor == SavedTensor::SiluGate) {
    throw InputError(std::string(option) + " names \"silu\", which the fused gate never forms; use \"" +
                     std::string(kSavedTensorNames[static_cast<std::size_t>(SavedTensor::Product)]) + "\"");
  }
  if (keep.has(tensor)) {
    throw InputError(std::string(option) + " names \"" + std::string(name) + "\" twice; name it once");
  }
  return keep.with(tensor);
}

KeepSet checked(KeepSet keep, std::string_view option) {
  if (keep.has(SavedTensor::LayerInput)) return keep;
  throw InputError(std::string(option) +
                   " lacks \"layer_input\": nothing else gives it, and the rest is computed from it");
}

}  // namespace

Policy parse_policy(std::string_view name) {
  return static_cast<Policy>(index_of(name, kPolicyNames, "memory.policy"));
}

KeepSet keep_of(Policy policy) { return kKeepOfPolicy[static_cast<std::size_t>(policy)]; }

KeepSet parse_keep(const Words& names, std::string_view option) {
  KeepSet keep;
  for (const std::string& name : names) keep = add_named(keep, name, option);
  return checked(keep, option);
}

std::string policy_text(KeepSet keep) {
  for (std::size_t i = 0; i < kPolicyNames.size(); ++i) {
    if (kKeepOfPolicy[i] == keep) return std::string(kPolicyNames[i]);
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kSavedTensors; ++i) {
    if (keep.has(static_cast<SavedTensor>(i))) names.emplace_back(kSavedTensorNames[i]);
  }
  return join(names, "+");
}

KeepSet parse_policy_text(std::string_view text, std::string_view option) {
  for (const Policy policy : {Policy::None, Policy::Balanced, Policy::BalancedFc1, Policy::Full}) {
    if (name_of(policy) == text) return keep_of(policy);
  }
  const auto names = split(text, '+');
  const bool tensor = std::ranges::find(kSavedTensorNames, names.front()) != kSavedTensorNames.end();
  if (names.size() == 1 && !tensor) {
    throw InputError(std::string(option) + " \"" + printable(text) +
                     "\" is not a policy; use none, balanced, balanced+fc1, full, or names of tensors as in "
                     "\"layer_input+q+kv\"");
  }
  KeepSet keep;
  for (const std::string_view name : names) keep = add_named(keep, name, option);
  return checked(keep, option);
}

std::int64_t numbers_per_token(const Shape& shape, SavedTensor tensor) {
  switch (tensor) {
    case SavedTensor::Query:
      return shape.query_width() + (shape.head_norms ? shape.query_width() + shape.kv_width() : 0);
    case SavedTensor::AttentionOutput:
      return shape.query_width();
    case SavedTensor::KeyValue:
      return 2 * shape.kv_width();
    case SavedTensor::Dispatched:
      return shape.experts > 1 ? shape.experts_per_token * shape.hidden : 0;
    case SavedTensor::GateUp:
      return 2 * (shape.experts_per_token * shape.ffn + shape.shared_ffn);
    case SavedTensor::SiluGate:
    case SavedTensor::Product:
      return shape.experts_per_token * shape.ffn + shape.shared_ffn;
    case SavedTensor::LayerInput:
    case SavedTensor::NormOneOutput:
    case SavedTensor::NormTwoInput:
    case SavedTensor::NormTwoOutput:
      return shape.hidden;
  }
  PENSTOCK_CHECK(false, "every saved tensor has a size");
}

Bytes kept_bytes(const Shape& shape, KeepSet keep, Bytes element, bool keys_cached) {
  if (keys_cached) keep = keep.with(SavedTensor::KeyValue);
  std::int64_t numbers = 0;
  for (std::size_t i = 0; i < kSavedTensors; ++i) {
    const auto tensor = static_cast<SavedTensor>(i);
    if (keep.has(tensor)) numbers += numbers_per_token(shape, tensor);
  }
  return numbers * element;
}

Bytes recomputed_bytes(const Shape& shape, KeepSet keep, Bytes element, bool keys_cached) {
  if (keys_cached) keep = keep.with(SavedTensor::KeyValue);
  std::int64_t numbers = 0;
  for (std::size_t i = 0; i < kSavedTensors; ++i) {
    const auto tensor = static_cast<SavedTensor>(i);
    if (kNone.has(tensor) && !keep.has(tensor)) numbers += numbers_per_token(shape, tensor);
  }
  return numbers * element;
}

// A gradient is as large as its tensor; LayerInput and NormTwoInput stand for the residual stream's
// gradients. Routed experts use rows of the output's gradient, a shared expert that gradient itself. The
// router's scores and the shared gate have gradients too. The inputs of head norms are not operands.
Bytes weight_record_bytes(const Shape& shape, KeepSet part, Bytes element, Bytes accumulator) {
  Bytes bytes = kept_bytes(shape, kNone.common(part), element);
  if (shape.head_norms && part.has(SavedTensor::Query))
    bytes -= (shape.query_width() + shape.kv_width()) * element;
  if (shape.experts > 1 && part.has(SavedTensor::Dispatched))
    bytes += (shape.experts_per_token - (shape.shared_ffn > 0 ? 0 : 1)) * shape.hidden * element +
             (shape.experts + (shape.shared_gate ? 1 : 0)) * accumulator;
  return bytes;
}

Bytes key_value_bytes(const Shape& shape, Bytes element) {
  return numbers_per_token(shape, SavedTensor::KeyValue) * element;
}

Bytes statistics_bytes(const Shape& shape, KeepSet keep, Bytes accumulator) {
  std::int64_t numbers = 0;
  if (keep.has(SavedTensor::NormOneOutput)) numbers += 1;
  if (keep.has(SavedTensor::Query) && shape.head_norms) numbers += shape.heads + shape.kv_heads;
  if (keep.has(SavedTensor::AttentionOutput)) numbers += shape.heads;
  if (keep.has(SavedTensor::NormTwoOutput)) numbers += 1;
  if (!keep.has(SavedTensor::GateUp) || shape.experts == 1) return numbers * accumulator;
  constexpr Bytes kIndices = 3 * sizeof(std::int64_t);  // the expert, its row, the row's token
  const std::int64_t chosen = shape.experts_per_token;
  const std::int64_t shared = shape.shared_ffn > 0 ? 1 : 0;
  return (numbers + shape.experts + 1 + 2 * chosen + shared) * accumulator + chosen * kIndices;
}

}  // namespace penstock::model
