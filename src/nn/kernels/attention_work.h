// SPDX-License-Identifier: Apache-2.0
// The work of attention, for the profile.
#pragma once

#include "nn/kernels/attention.h"
#include "nn/kernels/profile.h"

namespace penstock::nn::kernels {

// `products` matrix products over the scores, of pairs that are seen; of a causal square half.
KernelTimer::Work attention_work(const at::Tensor& query, const at::Tensor& key, const Visible& visible,
                                 double products);

}  // namespace penstock::nn::kernels
