// SPDX-License-Identifier: Apache-2.0
// Attention computed for another device: its queries over some of its earlier keys, with backward.
#pragma once

#include <span>
#include <vector>

#include "nn/earlier_part.h"
#include "nn/kernels/attention.h"

namespace penstock::nn {

// Keys and values of another device, and which of them the queries see.
struct AskedKeys : KeyValues {
  kernels::Visible visible = {};
};

// `query` [b, H, T, d] is contiguous; at least one part. Returns the result over all parts; its output [b, H,
// T, d] is contiguous, in the compute type.
kernels::AttentionPart attend_to(const at::Tensor& query, std::span<const AskedKeys> parts);

// All contiguous, in the accumulator type.
struct ServedGradients {
  at::Tensor query;              // [b, H, T, d], summed over the parts
  std::vector<KeyValues> parts;  // one per part
};
// `merged` is the other device's result over all of its keys.
ServedGradients attend_to_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const kernels::AttentionPart& merged, std::span<const AskedKeys> parts);

}  // namespace penstock::nn
