// SPDX-License-Identifier: Apache-2.0
#include "train/record/rank_times.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace penstock::train {
namespace {

double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

double RankTimes::greatest() const { return std::ranges::max(times); }

std::vector<int> RankTimes::slow() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    if (times[rank] >= kSlowRank) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

RankTimeWatch::RankTimeWatch(comm::World world, comm::RankNames names)
    : world_(world), names_(std::move(names)) {}

std::vector<std::string> RankTimeWatch::newly_slow(const RankTimes& times) {
  std::vector<std::string> sentences;
  for (const int rank : times.slow()) {
    if (!slow_.insert(rank).second) continue;
    sentences.push_back(print_rank(names_, rank) + " takes " + number(times.times[rank], 2) +
                        " times as long as the median rank for equal work, in the last " +
                        std::to_string(kRankTimeSteps) + " steps");
  }
  return sentences;
}

std::optional<RankTimes> RankTimeWatch::note(std::optional<double> time) {
  if (!time || world_->size() == 1) return {};
  recent_.push_back(*time);
  return std::ssize(recent_) == kRankTimeSteps ? compare() : std::nullopt;
}

std::optional<RankTimes> RankTimeWatch::of_run() {
  if (comparisons_ == 0) return compare();
  RankTimes means{sums_};
  for (double& time : means.times) time /= comparisons_;
  return means;
}

std::optional<RankTimes> RankTimeWatch::compare() {
  if (recent_.empty()) return {};
  const double mine = lower_median(std::exchange(recent_, {}));
  RankTimes all{std::vector<double>(static_cast<std::size_t>(world_->size()))};
  world_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all.times)));
  const double median = lower_median(all.times);
  if (median <= 0) return {};
  for (double& time : all.times) time /= median;
  sums_.resize(all.times.size());
  for (std::size_t rank = 0; rank < sums_.size(); ++rank) sums_[rank] += all.times[rank];
  ++comparisons_;
  return all;
}

}  // namespace penstock::train
