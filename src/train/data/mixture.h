// SPDX-License-Identifier: Apache-2.0
// Samples of several sources in given shares, without state: draw k is a function of k.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/data_shares.h"

namespace penstock::train {

class Mixture {
 public:
  // The order of sources repeats after this many draws; shares are exact to 1/kPeriod.
  static constexpr std::int64_t kPeriod = run::kMixturePeriod;

  // Shares are positive, in any unit, and at least 1/kPeriod of their sum.
  explicit Mixture(std::span<const double> shares);

  struct Draw {
    std::size_t source = 0;
    std::int64_t rank = 0;  // earlier draws from the same source
  };

  // After any number of draws each source has had its share within a few draws: the next draw takes the
  // source furthest behind (as in Megatron's blended data).
  Draw at(std::int64_t index) const;

 private:
  std::vector<Draw> period_;
  std::vector<std::int64_t> drawn_in_period_;  // per source
};

}  // namespace penstock::train
