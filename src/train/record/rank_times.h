// SPDX-License-Identifier: Apache-2.0
// Which ranks are slow: the time that each takes for equal work, over the median of all ranks.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "comm/rank_names.h"

namespace penstock::train {

inline constexpr int kRankTimeSteps = 20;  // of a comparison
inline constexpr double kSlowRank = 1.2;   // times the median

// Times over the median rank's, by rank; of an even number of ranks the lower median counts.
struct RankTimes {
  std::vector<double> times;
  double greatest() const;
  std::vector<int> slow() const;  // ranks of at least kSlowRank
};

// Every 20 steps the ranks compare the median of their times of these steps, so that a single disturbed step
// makes no rank slow. Calls are collective.
class RankTimeWatch {
 public:
  // `names`: of all ranks.
  RankTimeWatch(comm::World world, comm::RankNames names);

  // After each step: this rank's time for a unit of work; none: ranks cannot be compared in this run. The
  // comparison when it is due.
  std::optional<RankTimes> note(std::optional<double> time);

  // A sentence for each rank that is slow now and was not before.
  std::vector<std::string> newly_slow(const RankTimes& times);

  // The mean of all comparisons, or one of the steps so far.
  std::optional<RankTimes> of_run();

 private:
  std::optional<RankTimes> compare();

  comm::World world_;
  comm::RankNames names_;
  std::set<int> slow_;          // that have been told
  std::vector<double> recent_;  // this rank's, since the last comparison
  std::vector<double> sums_;    // by rank
  int comparisons_ = 0;
};

}  // namespace penstock::train
