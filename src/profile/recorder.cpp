// SPDX-License-Identifier: Apache-2.0
#include "profile/recorder.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

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

// The mean, or the lesser if one round was disturbed.
Seconds of_two_rounds(Seconds first, Seconds second) {
  constexpr double kDisturbed = 1.2;
  const auto [less, more] = std::minmax(first, second);
  return more > kDisturbed * less ? less : (less + more) / 2;
}

}  // namespace

// Short compared with a figure.
Seconds Recorder::yardstick_now() const {
  return yardstick_ ? measure_(yardstick_, {.budget = 0, .least = 3}).seconds : 0;
}

void Recorder::compare_with(std::function<void()> yardstick) {
  yardstick_ = std::move(yardstick);
  yardstick_took_ = yardstick_now();
}

Recorder::Figure Recorder::measured(const std::function<void()>& work) {
  world_.barrier();
  const Seconds before = yardstick_took_;
  const Sample sample = measure_(work, effort_now());
  yardstick_took_ = yardstick_now();
  double sums[] = {sample.seconds, sample.spread, static_cast<double>(sample.repeats),
                   static_cast<double>(sample.disturbed), (before + yardstick_took_) / 2};
  world_.all_reduce(sums, std::size(sums), comm::Type::F64, comm::Reduction::Sum);
  spread_ += sums[1] / world_.size();
  figures_ += 1;
  repeats_ += sums[2];
  disturbed_ += sums[3];
  return {.seconds = sums[0] / world_.size(), .yardstick = sums[4] / world_.size()};
}

Seconds Recorder::compared(const Figure& figure) const {
  // A yardstick far off its usual time was disturbed itself, and says nothing about the figure.
  constexpr double kMost = 4;
  const double scale = figure.yardstick > 0 ? usual_ / figure.yardstick : 0;
  return scale >= 1 / kMost && scale <= kMost ? figure.seconds * scale : figure.seconds;
}

Seconds Recorder::seconds(const std::function<void()>& work) {
  const Figure figure = measured(work);
  if (!again_) {
    first_.push_back(figure);
    return figure.seconds;
  }
  if (next_ == first_.size()) return compared(figure);
  return of_two_rounds(compared(first_[next_++]), compared(figure));
}

void Recorder::take_again() {
  PENSTOCK_CHECK(!again_, "figures are taken twice");
  again_ = true;
  std::vector<Seconds> yardsticks;
  for (const Figure& figure : first_) yardsticks.push_back(figure.yardstick);
  if (yardsticks.empty()) return;
  const auto middle = yardsticks.begin() + static_cast<std::ptrdiff_t>(yardsticks.size() / 2);
  std::nth_element(yardsticks.begin(), middle, yardsticks.end());
  usual_ = *middle;
}

}  // namespace penstock::profile
