// SPDX-License-Identifier: Apache-2.0
// Devices that compute part of a slice's attention to earlier slices for another device (context exchange;
// SlimPipe, SC'25): the oldest keys and values, in units of half slices (model/slice_halves.h).
//
// Calls per layer, forward: post_keys, post_queries, then merge after the local attention. Backward:
// post_keys, post_gradients, then add_gradients after the local backward; a layer that recomputes attention
// makes the forward calls first. Posting does not block, and posted tensors must not change until the reply
// has arrived; merge and add_gradients block.
#pragma once

#include <span>

#include "nn/kernels/attention.h"
#include "nn/record.h"

namespace penstock::nn {

// Records of the micro-batch's earlier slices in the same layer, newest first.
using EarlierSlices = std::span<LayerRecord* const>;

class AttentionPartners {
 public:
  enum class Pass : std::uint8_t { Forward, Backward };
  virtual ~AttentionPartners() = default;

  // Number of halves that others compute: [0, halves()).
  virtual int halves() const = 0;

  virtual void post_keys(EarlierSlices earlier, Pass pass) = 0;

  virtual void post_queries(const at::Tensor& query) = 0;  // [b, H, T, d] contiguous
  virtual void merge(kernels::AttentionPart& total) = 0;   // in a fixed order, independent of arrival

  // `merged` is the result over all keys; outputs and gradients [b, H, T, d].
  virtual void post_gradients(const at::Tensor& query, const kernels::AttentionPart& merged,
                              const at::Tensor& grad_output) = 0;
  // Adds to the query's gradient (accumulator type) and to the earlier slices' key and value gradients.
  virtual void add_gradients(at::Tensor& grad_query, EarlierSlices earlier) = 0;
};

}  // namespace penstock::nn
