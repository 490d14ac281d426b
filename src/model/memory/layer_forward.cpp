// SPDX-License-Identifier: Apache-2.0
#include "model/memory/layer_forward.h"

namespace penstock::model {

void LayerForward::gather_input(Shared rows, bool keeps) {
  kept_[rows] = keeps;
  gather();
}
void LayerForward::end_gather_input(Shared rows) {
  if (!kept_[rows]) end_gather();
}

void LayerForward::complete(KeepSet have, bool backward) {
  kept_.fill(false);
  const auto lacks = [&](SavedTensor tensor) { return !have.has(tensor); };
  if (lacks(SavedTensor::NormOneOutput)) take_norm(SavedTensor::NormOneOutput);
  const bool projects = lacks(SavedTensor::Query) || lacks(SavedTensor::KeyValue);
  if (projects) gather_input(kNormOne, backward);
  for (const Shape& shard : shards_) {
    if (lacks(SavedTensor::Query)) project_query(shard);
    if (lacks(SavedTensor::KeyValue)) {
      project_keys(shard, lacks(SavedTensor::Query));
    } else if (lacks(SavedTensor::Query) && shard.head_norms) {
      take_product(shard.hidden, shard.kv_width());
      take_norms(shard.kv_width(), shard.kv_heads);
      tape_.give(wide(shard.kv_width()));
    }
  }
  if (projects) end_gather_input(kNormOne);
  for (const Shape& shard : shards_) {
    if (!lacks(SavedTensor::AttentionOutput)) continue;
    in_context() ? attend_in_context(tape_, context_of(shard)) : attend(tape_, setting_, attention_of(shard));
  }
  // The attention branch lives until it is added, in one pass with the norm if both are computed.
  if (lacks(SavedTensor::NormTwoInput)) {
    scatter(queries);
    tape_.take(hidden());
  }
  if (lacks(SavedTensor::NormTwoOutput)) take_norm(SavedTensor::NormTwoOutput);
  if (lacks(SavedTensor::NormTwoInput)) tape_.give(hidden());
  if (has_experts() || !lacks(SavedTensor::GateUp)) return;
  gather_input(kNormTwo, backward);
  for (const Shape& shard : shards_) {
    take_product(shard.hidden, shard.ffn);
    take_product(shard.hidden, shard.ffn);
  }
  end_gather_input(kNormTwo);
}

// Head norms' outputs and scales. The products stay too, since the backward needs them.
void LayerForward::take_norms(std::int64_t width, std::int64_t heads) {
  tape_.take(wide(width) + rows_ * heads * accumulator_);
}

// Product, norms and rotation. Only the last result and the tensors for the norms' backward stay.
void LayerForward::project_query(const Shape& shard) {
  const Bytes query = wide(shard.query_width());
  take_product(shape_.hidden, shard.query_width());
  if (shard.head_norms) take_norms(shard.query_width(), shard.heads);
  tape_.take(query);
  if (in_context()) share_queries(tape_, context_of(shard));
  tape_.give(query);
}

void LayerForward::project_keys(const Shape& shard, bool with_queries) {
  const Bytes keys = wide(shard.kv_width());
  take_product(shape_.hidden, shard.kv_width());
  if (shard.head_norms) take_norms(shard.kv_width(), shard.kv_heads);
  tape_.take(keys);
  if (in_context()) share_keys(tape_, context_of(shard), true);
  tape_.give(keys);
  if (shard.head_norms && !with_queries) tape_.give(keys + rows_ * shard.kv_heads * accumulator_);
  take_product(shard.hidden, shard.kv_width());
  if (in_context()) share_keys(tape_, context_of(shard), false);
}

void LayerForward::end_layer_forward(KeepSet keep, bool input_is_message) {
  for (std::size_t i = 0; i < kSavedTensors; ++i) {
    const auto tensor = static_cast<SavedTensor>(i);
    if (tensor == SavedTensor::SiluGate) continue;
    if (tensor == SavedTensor::LayerInput && input_is_message) continue;
    const Bytes bytes = numbers(tensor) + statistics(tensor);
    keep.has(tensor) ? tape_.keep(bytes) : tape_.give(bytes);
  }
}

void LayerForward::embed() {
  if (!size_.sharded_vocabulary) return scatter_totals(true);
  tape_.take(wide(shape_.hidden));
  scatter_totals(false);
  tape_.give(wide(shape_.hidden));
  join();
}

}  // namespace penstock::model
