// SPDX-License-Identifier: Apache-2.0
// Samples of several sources in given shares, without state: draw k is a function of k.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::train {

class Mixture {
 public:
  // The order of sources repeats after so many draws; a share is exact to one in as many.
  static constexpr std::int64_t kPeriod = 10'000;

  // Shares are positive, in any unit, and at least one in kPeriod of their sum.
  explicit Mixture(std::span<const double> shares);

  struct Draw {
    std::size_t source = 0;
    std::int64_t rank = 0;  // how many draws before this one came from the same source
  };

  // After any number of draws each source has had its share, give or take a few draws: the next one comes
  // from where most is owed (as in Megatron's blended data).
  Draw at(std::int64_t index) const;

 private:
  std::vector<Draw> period_;
  std::vector<std::int64_t> drawn_in_period_;  // of each source
};

}  // namespace penstock::train
