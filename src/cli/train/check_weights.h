// SPDX-License-Identifier: Apache-2.0
// Checks that a run's initial weights fit its model.
#pragma once

#include "run/options.h"

namespace penstock::cli {

// Does nothing without model.weights. Throws InputError naming the key, the file and the defect: tensors that
// are missing, unknown or of another shape, or a config.json next to them of another model than the run's.
void check_weights(const run::ModelOptions& model);

// The same for a checkpoint's weights of other bytes than it recorded. Reads one of `shares` shares of the
// files, so that the ranks of one host can share the work (train/checkpoint/directory.h); another host may
// have a copy of its own.
void check_sums_of_weights(const run::ModelOptions& model, int share, int shares);

}  // namespace penstock::cli
