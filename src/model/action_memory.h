// SPDX-License-Identifier: Apache-2.0
// What one action of our engine takes beyond what was alive before it: temporaries between the operations,
// tensors that a policy did not keep and that are formed again, logits. It follows nn/stage.h operation by
// operation, so that a predicted peak is the measured one.
#pragma once

#include <vector>

#include "model/kernel_memory.h"
#include "model/memory_policy.h"

namespace penstock::model {

// The (stage, micro-batch, slice) that an action works on.
struct ActionSize {
  Shape shape;
  std::vector<KeepSet> keep;    // of the stage's layers; kv everywhere when the sequence has slices
  std::int64_t sequences = 1;   // b
  Tokens tokens = 1;            // T
  std::vector<Tokens> earlier;  // lengths of the earlier slices, newest first
  bool last_slice = true;       // of its micro-batch
  bool first_stage = false;     // embeds tokens
  bool last_stage = false;      // ends with the loss
  bool handed_over = false;     // its input comes from a stage of the same device, not by a message
  bool gradient_handed_over = false;
  Tokens loss_tile = 512;
};

enum class ActionKind : std::uint8_t { Forward, Backward, BackwardInput, BackwardWeight };

struct ActionMemory {
  Bytes temporary = 0;  // at their most
  Bytes growth = 0;     // of all categories together, at its most, over what was alive at the start
};
ActionMemory action_memory(const ActionSize& size, const KernelSetting& setting, ActionKind kind);

// Logits of one tile with what their product works on; 0 but on the last stage.
Bytes logits_tile_bytes(const ActionSize& size, const KernelSetting& setting);

}  // namespace penstock::model
