// SPDX-License-Identifier: Apache-2.0
// Loads a trainer's state from a checkpoint, for any mesh.
#pragma once

#include <functional>
#include <string>

#include "train/checkpoint/facts.h"
#include "train/checkpoint/saved_state.h"
#include "train/step/trainer.h"

namespace penstock::train {

// Sets this rank's weights, moments and count of updates. Throws InputError naming the file and the tensor if
// one is missing, damaged, or of another shape or type than the model's. Collective if reading the state is.
// `after_tensor` is called after each of the state's tensors; may be empty.
void load_state(SavedState& state, const CheckpointFacts& facts, Trainer& trainer,
                const std::function<void()>& after_tensor = {});

// Loads from a checkpoint directory that this rank sees.
void load_checkpoint(const std::string& checkpoint, const CheckpointFacts& facts, Trainer& trainer);

}  // namespace penstock::train
