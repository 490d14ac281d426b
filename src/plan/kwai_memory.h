// SPDX-License-Identifier: Apache-2.0
// Peak of the allocator's bytes in the engine of Yuan et al. (USENIX ATC'24), a Megatron with interleaved
// 1F1B, distributed Adam and offloading; `torch.cuda.max_memory_allocated` after the second step, highest
// over the devices. Formulas alone, nothing fitted.
#pragma once

#include <vector>

#include "model/memory_policy.h"
#include "model/memory_terms.h"

namespace penstock::plan {

struct KwaiCase {
  model::Shape shape;  // vocabulary as padded for t
  model::Spread spread;
  Tokens seq_len = 0;
  int micro_batches = 1;
  int chunks = 1;  // v
  model::Policy policy = model::Policy::Engine24;
  double offload = 0;
};

// Bytes of one device at its peak, by what they are.
struct KwaiMemory {
  double states = 0;   // weights, gradients, optimizer shard
  double scratch = 0;  // Transformer Engine keeps one dummy weight gradient of each shape of a layer, in bf16
  double records = 0;  // saved activations on the device, with offloading's buffers
  double split = 0;    // the copied remainder of the split tensor, and what its blocks waste
  double logits = 0;   // on the last device: in bf16 and in f32
  double transient = 0;

  double total() const { return states + scratch + records + split + logits + transient; }
};

KwaiMemory kwai_device_memory(const KwaiCase& kwai_case, int rank);
KwaiMemory kwai_memory(const KwaiCase& kwai_case);  // of the fullest device

// Whole-card bytes that the allocator cannot have: CUDA's context, NCCL's and the tensor-parallel overlap's
// buffers, and holes between blocks. 80 GB cards of the published runs held 72.8 GB of tensors and not 77.4
// GB.
inline constexpr double kKwaiReservedBytes = 5e9;
bool kwai_fits(const KwaiMemory& memory, double card_bytes);

}  // namespace penstock::plan
