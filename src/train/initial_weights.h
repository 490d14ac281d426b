// SPDX-License-Identifier: Apache-2.0
// Weights that a run begins with instead of drawn ones.
#pragma once

#include <vector>

#include "files/model_weights.h"
#include "nn/parameter.h"

namespace penstock::train {

// Sets the masters of parameters, whatever floating-point format the file has them in; only the bytes that
// they need are read, of a shard its rows. The weights have been checked against the model's shape. What the
// products read is set from the masters afterwards.
void load_weights(const files::ModelWeights& weights, const std::vector<nn::Parameter*>& parameters);

}  // namespace penstock::train
