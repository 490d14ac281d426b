// SPDX-License-Identifier: Apache-2.0
// Checks that a run's initial weights fit its model.
#pragma once

#include <string>
#include <vector>

#include "run/options.h"

namespace penstock::cli {

// Does nothing without model.weights. Throws InputError naming the key, the file and the defect: tensors that
// are missing, unknown or of another shape, or a config.json next to them of another model than the run's.
void check_weights(const run::ModelOptions& model);

// One of so many shares of a checkpoint's files, so that ranks can divide the verification among them.
struct WeightsShare {
  int share = 0;
  int shares = 1;
};

// The share of a rank: the ranks of each host together read every file, since hosts may have copies of their
// own. `hosts`: by rank.
WeightsShare share_on_host(const std::vector<std::string>& hosts, int rank);

// Throws InputError naming the key, the file and the tensor when a checkpoint's weights have other bytes than
// it recorded (train/checkpoint/directory.h). Does nothing without model.weights.
void check_sums_of_weights(const run::ModelOptions& model, WeightsShare mine);

}  // namespace penstock::cli
