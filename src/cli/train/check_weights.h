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
// are missing, unknown or of another shape, or a config.json next to them of another model than the run's.
void check_weights(const run::ModelOptions& model);

// One of so many shares of a checkpoint's files, so that ranks can divide the verification among them.
struct WeightsShare {
  int share = 0;
  int shares = 1;
  std::function<void()> after_tensor = {};  // may be empty
};

// The share of a rank: the ranks of each host together read every file, since hosts may have copies of their
// own. `hosts`: by rank.
WeightsShare share_on_host(const std::vector<std::string>& hosts, int rank);

// Throws InputError naming the key, the file and the tensor when a checkpoint's weights have other bytes than
// it recorded (train/checkpoint/directory.h). Does nothing without model.weights.
void check_sums_of_weights(const run::ModelOptions& model, const WeightsShare& mine);

// What all ranks agree on (agree.h) of work in which each verifies its share: those that are done wait for
// the others for as long as these come from tensor to tensor. Collective.
Refusal agree_on_weights(comm::Communicator& world, const std::function<void(const WeightsShare&)>& work);

// Checksum of spans of the weights, in a time independent of their size: tells apart what hosts have under
// one name. None without model.weights. Throws InputError as check_weights(), which comes first.
std::optional<std::uint64_t> sum_of_weights(const run::ModelOptions& model);

}  // namespace penstock::cli
