// SPDX-License-Identifier: Apache-2.0
// Weights that a run begins with instead of drawn ones.
#pragma once

#include "files/model_weights.h"
#include "nn/stage.h"

namespace penstock::train {

// Sets the weights of a stage, whatever floating-point format the file has them in; only the bytes that the
// stage needs are read. The weights have been checked against the model's shape.
void load_weights(const files::ModelWeights& weights, nn::Stage& stage);

}  // namespace penstock::train
