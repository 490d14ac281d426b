// SPDX-License-Identifier: Apache-2.0
#include "train/record/expert_load.h"

#include <algorithm>
#include <numeric>

namespace penstock::train {

double ExpertLoad::greatest_over_mean(std::size_t layer) const {
  const std::vector<std::int64_t>& counts = rows[layer];
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (all == 0) return 1;
  const auto greatest = static_cast<double>(std::ranges::max(counts));
  return greatest * static_cast<double>(counts.size()) / static_cast<double>(all);
}

double ExpertLoad::greatest_over_mean() const {
  double worst = 1;
  for (std::size_t layer = 0; layer < rows.size(); ++layer)
    worst = std::max(worst, greatest_over_mean(layer));
  return worst;
}

}  // namespace penstock::train
