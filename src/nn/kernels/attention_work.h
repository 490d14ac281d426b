// SPDX-License-Identifier: Apache-2.0
// Work of attention calls, for the profile.
#pragma once

#include "nn/kernels/attention.h"
#include "nn/kernels/profile.h"

namespace penstock::nn::kernels {

// FLOPs of `products` matrix products over the visible query-key pairs; a causal square counts half.
// 0 where nothing is profiled.
KernelTimer::Work attention_work(const at::Tensor& query, const at::Tensor& key, const Visible& visible,
                                 double products);

}  // namespace penstock::nn::kernels
