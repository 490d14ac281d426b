// SPDX-License-Identifier: Apache-2.0
// Memory that one action of our engine allocates on top of live memory: temporaries between operations,
// recomputed tensors, logits. Mirrors nn/stage.h operation by operation, so that the predicted peak equals
// the measured one.
#pragma once

#include <vector>

#include "model/memory/kernels.h"
#include "model/memory/layer_shards.h"
#include "model/memory/policy.h"

namespace penstock::model {

// The size of an action's (stage, micro-batch, slice).
struct ActionSize {
  Shape shape;                      // of the whole model
  TensorSplit tensor;               // of layers and vocabulary
  ContextSplit context;             // of attention
  int expert_ranks = 1;             // ranks that split its experts
  std::vector<KeepSet> keep;        // per layer of the stage; includes kv if the sequence is sliced
  std::int64_t sequences = 1;       // b
  Tokens tokens = 1;                // T, per context rank
  std::vector<Tokens> earlier;      // lengths of the earlier slices, newest first, per context rank
  bool last_slice = true;           // of its micro-batch
  bool first_stage = false;         // embeds tokens
  bool last_stage = false;          // ends with the loss
  bool sharded_vocabulary = false;  // over the pipeline: actions neither embed nor compute the loss
  bool handed_over = false;         // its input is from a stage on the same device, without a message
  bool gradient_handed_over = false;
  Tokens loss_tile = usual_loss_tile(false);
};

enum class ActionKind : std::uint8_t { Forward, Backward, BackwardInput, BackwardWeight };

// Peaks.
struct ActionMemory {
  Bytes temporary = 0;
  Bytes growth = 0;    // all categories, relative to the start of the action
  Bytes logits = 0;    // logits tiles, if the action computes the loss
  Bytes messages = 0;  // for the loss of tensor-parallel ranks: gathered hidden states, partial gradients
};
ActionMemory action_memory(const ActionSize& size, const KernelSetting& setting, ActionKind kind);

}  // namespace penstock::model
