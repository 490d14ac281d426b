// SPDX-License-Identifier: Apache-2.0
// Do the weights that a run begins with fit its model?
#pragma once

#include "train/options.h"

namespace penstock::cli {

// Nothing to check without model.weights. Throws InputError naming the key, the file and what is wrong:
// tensors that are missing, unknown or of another shape, and a config.json beside them that says another
// model than the run's.
void check_weights(const train::ModelOptions& model);

}  // namespace penstock::cli
