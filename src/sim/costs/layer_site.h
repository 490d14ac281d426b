// SPDX-License-Identifier: Apache-2.0
// What the parts of a layer's cost read: the slice, the machine and the engine.
#pragma once

#include <algorithm>

#include "sim/costs/kernel_cost.h"
#include "sim/costs/layer_cost.h"

namespace penstock::sim {

// A layer's slice with the machine and the engine that compute it, which must outlive it.
struct Site {
  const LayerSlice& slice;
  const Hardware& hardware;
  const Engine& engine;
  model::Shape held;  // what a rank computes of the layer
  double tokens;
  double t;  // tensor ranks

  const model::Shape& shape() const { return held; }
  double hidden() const { return as_double(shape().hidden); }
  double queries() const { return as_double(shape().query_width()); }
  double keys() const { return as_double(shape().kv_width()); }
  double hidden_bytes() const { return hardware.number_bytes() * tokens * hidden(); }
  double own_hidden_bytes() const { return hidden_bytes() / t; }
  FlashAttention flash() const {
    return {tokens,          slice.own,  slice.earlier,
            queries() / t,   slice.seen, as_double(shape().head_dim()),
            engine.attention};
  }
  PlainAttention plain() const {
    return {tokens, slice.sequence, queries() / t, as_double(shape().heads) / t, engine.dropout};
  }
  bool has_experts() const { return shape().experts > 1; }
  // Folded experts are whole and take the rank's own tokens: no gather or scatter around them.
  bool folds_experts() const { return engine.folded_experts && has_experts(); }
  bool missing(model::SavedTensor tensor) const { return !slice.keep.has(tensor); }
  // Kept, or in the cache.
  bool has_keys() const { return slice.sliced || !missing(model::SavedTensor::KeyValue); }
  double expert_load() const { return std::min(slice.expert_load, greatest_load(held, slice.mesh)); }
  double gates() const { return slice.family == Family::Llama ? 2.0 : 1.0; }
};

inline Site site_of(const LayerSlice& slice, const Hardware& hardware, const Engine& engine) {
  const int t = slice.mesh.tensor, all = t * static_cast<int>(slice.shards);
  return {slice, hardware, engine, shape_of_ranks(slice.shape, all), slice.tokens, as_double(t)};
}

}  // namespace penstock::sim
