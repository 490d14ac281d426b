// SPDX-License-Identifier: Apache-2.0
#include "profile/recorder.h"

#include <algorithm>
#include <iterator>

namespace penstock::profile {

Effort Recorder::effort_now() const {
  const Seconds passed = steady_seconds() - began_;
  Effort effort = effort_;
  if (passed > effort_.late) {
    effort.budget /= 3;
    effort.least = std::min(effort.least, 3);
  }
  if (passed > effort_.late * 5 / 3) {
    effort.budget = 0;
    effort.least = 1;
  }
  return effort;
}

namespace {

// Their mean, or the lesser where one round was disturbed.
Seconds of_two_rounds(Seconds first, Seconds second) {
  constexpr double kDisturbed = 1.2;
  const auto [less, more] = std::minmax(first, second);
  return more > kDisturbed * less ? less : (less + more) / 2;
}

}  // namespace

Seconds Recorder::seconds(const std::function<void()>& work) {
  world_.barrier();
  const Sample sample = measure(work, effort_now());
  double sums[] = {sample.seconds, sample.spread, static_cast<double>(sample.repeats),
                   static_cast<double>(sample.disturbed)};
  world_.all_reduce(sums, std::size(sums), comm::Type::F64, comm::Reduction::Sum);
  spread_ += sums[1] / world_.size();
  figures_ += 1;
  repeats_ += sums[2];
  disturbed_ += sums[3];
  const Seconds mean = sums[0] / world_.size();
  if (next_ == measured_.size()) measured_.push_back(mean);
  Seconds& figure = measured_[next_++];
  return figure = of_two_rounds(figure, mean);
}

void Recorder::take_again() { next_ = 0; }

}  // namespace penstock::profile
