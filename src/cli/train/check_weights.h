// SPDX-License-Identifier: Apache-2.0
// Checks that a run's initial weights fit its model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/agree.h"
#include "comm/communicator.h"
#include "run/options.h"

namespace penstock::cli {

// Does nothing without model.weights. Throws InputError naming the key, the file and the defect: tensors that
// are missing, unknown or of another shape, or another model in the config.json next to them or in the
// run.toml of their run.
void check_weights(const run::ModelOptions& model);

// Share `share` of `shares` of a checkpoint's files, to split the verification among ranks.
struct WeightsShare {
  int share = 0;
  int shares = 1;
  std::function<void()> after_tensor = {};  // may be empty
};

// Returns a rank's share. The ranks of each host together read every file, since hosts may have their own
// copies. `hosts`: one per rank.
WeightsShare share_on_host(const std::vector<std::string>& hosts, int rank);

// Throws InputError naming the key, the file and the tensor if a checkpoint's weights do not match its
// recorded checksums (train/checkpoint/directory.h). Does nothing without model.weights.
void check_sums_of_weights(const run::ModelOptions& model, const WeightsShare& mine);

// Runs `work`, in which each rank verifies its share, and returns the refusal that all agree on (agree.h).
// Ranks that are done wait for the others as long as these complete tensors. Collective.
Refusal agree_on_weights(comm::Communicator& world, const std::function<void(const WeightsShare&)>& work);

// Checksum of spans of the weights, in time independent of their size: shows whether hosts have different
// files under one name. Empty without model.weights. Call after check_weights(); throws InputError like it.
std::optional<std::uint64_t> sum_of_weights(const run::ModelOptions& model);

}  // namespace penstock::cli
