// SPDX-License-Identifier: Apache-2.0
// What the routers of layers with experts did in one step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::train {

struct ExpertLoad {
  std::vector<std::vector<std::int64_t>> rows;  // [layer][expert] token slots, of all ranks
  double balance_loss = 0;                      // beside the step's loss, with their coefficients
  double z_loss = 0;

  // The greatest expert's share over the mean, of one layer; 1 when balanced.
  double greatest_over_mean(std::size_t layer) const;
  double greatest_over_mean() const;  // of the worst layer
};

}  // namespace penstock::train
