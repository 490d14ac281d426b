// SPDX-License-Identifier: Apache-2.0
#include "train/data/mixture.h"

#include <numeric>

#include "base/error.h"

namespace penstock::train {

Mixture::Mixture(std::span<const double> shares) : drawn_in_period_(shares.size()) {
  PENSTOCK_CHECK(!shares.empty(), "samples come from somewhere");
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (std::int64_t index = 0; index < kPeriod; ++index) {
    std::size_t source = 0;
    double most = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const double owed =
          shares[i] / sum * static_cast<double>(index + 1) - static_cast<double>(drawn_in_period_[i]);
      if (owed > most) {
        most = owed;
        source = i;
      }
    }
    period_.push_back({source, drawn_in_period_[source]++});
  }
}

Mixture::Draw Mixture::at(std::int64_t index) const {
  const Draw& draw = period_[index % kPeriod];
  return {draw.source, index / kPeriod * drawn_in_period_[draw.source] + draw.rank};
}

}  // namespace penstock::train
