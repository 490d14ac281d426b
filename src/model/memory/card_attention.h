// SPDX-License-Identifier: Apache-2.0
// Attention's backward in bf16 on a card, by cuDNN: its calls (nn/kernels/cuda/flash.h) and their room, which
// was determined by observation on Hopper (9.19).
#pragma once

#include "model/memory/kernels.h"

namespace penstock::model {

// Over so many keys: whether the gradients are sums of several calls in f32, and what is taken beside them.
struct CardBackward {
  bool wide = false;
  Bytes scratch = 0;
};
CardBackward card_backward(const KernelSetting& setting, const AttentionSize& size, Tokens keys);

}  // namespace penstock::model
