// SPDX-License-Identifier: Apache-2.0
// Other devices that compute a part of one slice's attention to earlier slices (context exchange, SlimPipe,
// SC'25): the oldest keys and values, counted in halves of slices (model/slice_halves.h).
//
// For each layer that attends: post_keys, post_queries, and after the local attention merge. For each layer's
// backward: post_keys, post_gradients, and after the local backward add_gradients. A layer that attends again
// in its backward does the first three before the others. Posting does not wait, and what is posted must not
// change until it has come back; merge and add_gradients wait.
#pragma once

#include <span>

#include "nn/kernels/attention.h"
#include "nn/record.h"

namespace penstock::nn {

// The same layer's records of the earlier slices of the micro-batch, newest first.
using EarlierSlices = std::span<LayerRecord* const>;

class AttentionHelpers {
 public:
  enum class Pass : std::uint8_t { Forward, Backward };
  virtual ~AttentionHelpers() = default;

  // How many halves are attended to elsewhere: those from 0 on.
  virtual int halves() const = 0;

  virtual void post_keys(EarlierSlices earlier, Pass pass) = 0;

  virtual void post_queries(const at::Tensor& query) = 0;  // [b, H, T, d] contiguous
  virtual void merge(kernels::AttentionPart& total) = 0;   // in the same order whatever comes first

  // `merged` is the result over all keys; outputs and gradients [b, H, T, d].
  virtual void post_gradients(const at::Tensor& query, const kernels::AttentionPart& merged,
                              const at::Tensor& grad_output) = 0;
  // Adds to the query's gradient (accumulator type) and to those of the earlier slices' keys and values.
  virtual void add_gradients(at::Tensor& grad_query, EarlierSlices earlier) = 0;
};

}  // namespace penstock::nn
