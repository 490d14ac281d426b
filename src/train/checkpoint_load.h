// SPDX-License-Identifier: Apache-2.0
// A trainer's state from a checkpoint, wherever its stages live.
#pragma once

#include <string>

#include "train/checkpoint_facts.h"
#include "train/trainer.h"

namespace penstock::train {

// Sets weights, moments and the count of updates of what lives on this rank. Throws InputError naming the
// file and the tensor: missing, damaged, or of another shape or type than the model's.
void load_checkpoint(const std::string& checkpoint, const CheckpointFacts& facts, Trainer& trainer);

}  // namespace penstock::train
