// SPDX-License-Identifier: Apache-2.0
// Finds slow ranks: each rank's time for equal work, over the median of all ranks.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "comm/rank_names.h"

namespace penstock::train {

inline constexpr int kRankTimeSteps = 20;  // per comparison
inline constexpr double kSlowRank = 1.2;   // times the median

// Times over the median rank's, by rank. For an even number of ranks the lower median counts.
struct RankTimes {
  std::vector<double> times;
  double greatest() const;
  std::vector<int> slow() const;  // ranks of at least kSlowRank
};

// Every 20 steps the ranks compare the medians of their times in these steps, so one disturbed step makes no
// rank slow. note() and of_run() are collective.
class RankTimeWatch {
 public:
  // `names`: of all ranks.
  RankTimeWatch(comm::World world, comm::RankNames names);

  // Call after each step with this rank's time for a unit of work; nullopt: ranks are not comparable in this
  // run. Returns the comparison when it is due.
  std::optional<RankTimes> note(std::optional<double> time);

  // A sentence for each rank that is slow now and was not before.
  std::vector<std::string> newly_slow(const RankTimes& times);

  // The mean of all comparisons; before the first one, a comparison over the steps so far.
  std::optional<RankTimes> of_run();

 private:
  std::optional<RankTimes> compare();

  comm::World world_;
  comm::RankNames names_;
  std::set<int> slow_;          // ranks already reported
  std::vector<double> recent_;  // this rank's, since the last comparison
  std::vector<double> sums_;    // by rank
  int comparisons_ = 0;
};

}  // namespace penstock::train
