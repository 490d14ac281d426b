// SPDX-License-Identifier: Apache-2.0
// A tape of one layer's forward, and of its recomputation in a backward, in the order of
// nn/decoder_layer.cpp.
#pragma once

#include <array>

#include "model/memory/action.h"
#include "model/memory/context_attention.h"
#include "model/memory/layer_tape.h"
#include "model/memory/mixture.h"

namespace penstock::model {

class LayerForward : protected LayerTape {
 protected:
  // Both must outlive the tape.
  LayerForward(const ActionSize& size, const KernelSetting& setting)
      : LayerTape(size.shape, size.tensor, size.sequences * size.tokens, size.context, setting),
        size_(size) {}

  // Rows that several weight products read, as in nn/record.h.
  enum Shared : std::uint8_t { kGradient, kNormTwo, kMiddle, kNormOne };

  AttentionSize attention_of(const Shape& shard) const {
    return {size_.sequences, size_.tokens, size_.earlier, shard.heads, shard.kv_heads, shard.head_dim()};
  }
  bool in_context() const { return size_.context.ranks > 1; }
  ContextAttentionSize context_of(const Shape& shard) const {
    return {setting_, size_.context, attention_of(shard), size_.last_slice};
  }

  static std::int64_t queries(const Shape& shard) { return shard.query_width(); }

  // With `keeps` (in a backward) the gathered rows stay for the weight products.
  void gather_input(Shared rows, bool keeps);
  void end_gather_input(Shared rows);

  bool has_experts() const { return shape_.experts > 1; }
  MixtureTape mixture() { return {tape_, setting_, shape_, layer_.own_rows(), size_.expert_ranks}; }

  // Computes the tensors that `have` lacks, from norm 1 to gate and up, or to the experts' input, and leaves
  // them on the tape.
  void complete(KeepSet have, bool backward);

  // Keeps or gives the layer's tensors. Its output stays on the tape as the next layer's input.
  void end_layer_forward(KeepSet keep, bool input_is_message);

  // The tokens' embedding rows from each vocabulary shard, also other devices' if they split the vocabulary.
  void embed();

  const ActionSize& size_;
  std::array<bool, 4> kept_{};  // gathered rows on the tape, by Shared

 private:
  void take_norm(SavedTensor output) { tape_.take(numbers(output) + statistics(output)); }
  void project_query(const Shape& shard);
  // `with_queries`: the head norms' inputs stay, like the queries'; else the record has them already.
  void project_keys(const Shape& shard, bool with_queries);
  void take_norms(std::int64_t width, std::int64_t heads);
};

}  // namespace penstock::model
