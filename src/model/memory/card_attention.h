// SPDX-License-Identifier: Apache-2.0
// Attention's backward in bf16 on a card, by cuDNN: its calls (nn/kernels/cuda/flash.h) and their room, which
// was determined by observation on Hopper (9.19).
#pragma once

#include <span>
#include <vector>

#include "model/memory/kernels.h"

namespace penstock::model {

// Over so many keys: whether the gradients are sums of several calls in f32, and what is taken beside them.
struct CardBackward {
  bool wide = false;
  Bytes scratch = 0;
};
CardBackward card_backward(const KernelSetting& setting, const AttentionSize& size, Tokens keys);

// The lengths of the earlier slices in order, in groups whose keys one call goes over (model/joined_keys.h);
// on a processor each by itself. So does a card where sequences have documents, which takes less.
std::vector<std::span<const Tokens>> earlier_calls(const KernelSetting& setting, const AttentionSize& size);

Tokens keys_of(std::span<const Tokens> call);

// The keys and values of a group of several slices, which a card copies one after the other; else nothing.
Bytes joined_keys_and_values(const AttentionSize& size, std::span<const Tokens> call);

// A card's backward over such a group, as attend_backward_earlier() of one slice.
void attend_backward_joined(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                            std::span<const Tokens> call, bool begins);

}  // namespace penstock::model
