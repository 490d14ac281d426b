// SPDX-License-Identifier: Apache-2.0
// Peak allocated bytes in the engine of Yuan et al. (USENIX ATC'24), a Megatron with interleaved 1F1B,
// distributed Adam and offloading: `torch.cuda.max_memory_allocated` after the second step, maximum over the
// devices. Formulas only, nothing fitted.
#pragma once

#include <vector>

#include "model/memory/policy.h"
#include "model/memory/terms.h"

namespace penstock::plan {

struct KwaiCase {
  model::Shape shape;  // vocabulary as padded for t
  mesh::Mesh mesh;
  Tokens seq_len = 0;
  int micro_batches = 1;
  int chunks = 1;  // v
  model::Policy policy = model::Policy::Engine24;
  double offload = 0;
};

// Peak bytes of one device, by category.
struct KwaiMemory {
  double states = 0;   // weights, gradients, optimizer shard
  double scratch = 0;  // Transformer Engine keeps one dummy weight gradient of each shape of a layer, in bf16
  double records = 0;  // saved activations on the device, including offload buffers
  double split = 0;    // the copied remainder of the split tensor, and the waste in its blocks
  double logits = 0;   // on the last device, in bf16 and f32
  double transient = 0;

  double total() const { return states + scratch + records + split + logits + transient; }
};

KwaiMemory kwai_device_memory(const KwaiCase& kwai_case, int rank);
KwaiMemory kwai_memory(const KwaiCase& kwai_case);  // of the fullest device

// GPU memory that the allocator cannot use: CUDA's context, buffers of NCCL and of the tensor-parallel
// overlap, and fragmentation. 80 GB GPUs of the published runs held 72.8 GB of tensors but not 77.4 GB.
inline constexpr double kKwaiReservedBytes = 5e9;
bool kwai_fits(const KwaiMemory& memory, double gpu_bytes);

}  // namespace penstock::plan
