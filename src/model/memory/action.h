// SPDX-License-Identifier: Apache-2.0
// Memory that one action of our engine allocates on top of what was alive before: temporaries between
// operations, recomputed tensors, logits. Follows nn/stage.h operation by operation, so that the predicted
// peak equals the measured one.
#pragma once

#include <vector>

#include "model/memory/kernels.h"
#include "model/memory/layer_shards.h"
#include "model/memory/policy.h"

namespace penstock::model {

// The size of an action's (stage, micro-batch, slice).
struct ActionSize {
  Shape shape;                      // of the whole model
  TensorSplit tensor;               // of its layers and vocabulary
  ContextSplit context;             // of its attention
  int expert_ranks = 1;             // that share its experts out
  std::vector<KeepSet> keep;        // of the stage's layers; includes kv if the sequence has slices
  std::int64_t sequences = 1;       // b
  Tokens tokens = 1;                // T, of one context rank
  std::vector<Tokens> earlier;      // lengths of the earlier slices, newest first, likewise
  bool last_slice = true;           // of its micro-batch
  bool first_stage = false;         // embeds tokens
  bool last_stage = false;          // ends with the loss
  bool sharded_vocabulary = false;  // over the pipeline: actions neither embed nor form the loss
  bool handed_over = false;         // its input comes from a stage of the same device, without a message
  bool gradient_handed_over = false;
  Tokens loss_tile = usual_loss_tile(false);
};

enum class ActionKind : std::uint8_t { Forward, Backward, BackwardInput, BackwardWeight };

// Peaks.
struct ActionMemory {
  Bytes temporary = 0;
  Bytes growth = 0;    // over all categories, relative to the start of the action
  Bytes logits = 0;    // tiles of them, where the action forms the loss
  Bytes messages = 0;  // of the loss of tensor-parallel ranks: gathered hidden states, parts of gradients
};
ActionMemory action_memory(const ActionSize& size, const KernelSetting& setting, ActionKind kind);

}  // namespace penstock::model
