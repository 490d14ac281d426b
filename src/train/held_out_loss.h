// SPDX-License-Identifier: Apache-2.0
// The evaluation of a model on what is held out of its data.
#pragma once

#include <optional>

#include "train/data/data.h"
#include "train/step/trainer.h"

namespace penstock::train {

// Mean over the targets of the data's evaluation batches, nats; none where no token of them is a target.
// Collective.
std::optional<double> held_out_loss(const TokenData& data, TokenData::Part part, Trainer& trainer);

}  // namespace penstock::train
