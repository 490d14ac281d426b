// SPDX-License-Identifier: Apache-2.0
// Routing results of one step in layers with experts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::train {

struct ExpertLoad {
  std::vector<std::vector<std::int64_t>> rows;  // [layer][expert] token slots, over all ranks
  double balance_loss = 0;                      // not in the step's loss; both with their coefficients
  double z_loss = 0;

  // The busiest expert's load over the mean load, in one layer; 1 when balanced.
  double greatest_over_mean(std::size_t layer) const;
  double greatest_over_mean() const;  // in the worst layer
};

}  // namespace penstock::train
