// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 on a GPU: its calls (nn/kernels/cuda/flash.h, nn/kernels/by_document.h) and their
// workspace, which was determined by observation on Hopper for cuDNN (9.19), and is what its source allocates
// for LibTorch's FlashAttention (2.11).
#pragma once

#include <span>
#include <vector>

#include "model/memory/kernels.h"

namespace penstock::model {

// Memory of a forward call besides its results: 0, or by document the copied queries and the call's own
// results for a document that covers the slice, which is the upper bound.
Bytes gpu_forward_scratch(const KernelSetting& setting, const AttentionSize& size);

// A backward over `keys` keys. `wide`: the gradients are f32 sums of several calls. `scratch`: other bytes.
struct GpuBackward {
  bool wide = false;
  Bytes scratch = 0;
};
GpuBackward gpu_backward(const KernelSetting& setting, const AttentionSize& size, Tokens keys);

// The lengths of the earlier slices, in order, grouped by attention call (model/joined_keys.h); on the CPU
// and with documents one call per slice.
std::vector<std::span<const Tokens>> earlier_calls(const KernelSetting& setting, const AttentionSize& size);

Tokens keys_of(std::span<const Tokens> call);

// Bytes of the concatenated copy of keys and values that a GPU makes for several slices; 0 for one slice.
Bytes joined_keys_and_values(const AttentionSize& size, std::span<const Tokens> call);

// A GPU's backward over such a group; attend_backward_earlier() for several slices.
void attend_backward_joined(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                            std::span<const Tokens> call, bool begins);

}  // namespace penstock::model
