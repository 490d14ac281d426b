// SPDX-License-Identifier: Apache-2.0
// Evaluates a model on the held-out part of its data.
#pragma once

#include <optional>

#include "train/data/data.h"
#include "train/step/trainer.h"

namespace penstock::train {

// Mean loss in nats over the targets of the evaluation batches; nullopt if they have no targets. Collective.
std::optional<double> held_out_loss(const TokenData& data, TokenData::Part part, Trainer& trainer);

}  // namespace penstock::train
