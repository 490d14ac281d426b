// SPDX-License-Identifier: Apache-2.0
// Measures figures one by one on all ranks together, so that shared resources are shared as in training:
// ranks start a figure together, and its seconds are the mean over ranks. On a busy machine later figures get
// fewer repeats, so that a whole profile takes under two minutes. Disturbances of seconds, which all repeats
// of a figure would share, are met by taking figures once more later.
//
// What other programs leave of a processor changes from second to second, and then figures that are compared
// with each other are of different machines. So computation is measured beside a yardstick, a product that
// is always the same: a figure taken while that took a tenth longer than it mostly does counts a tenth less.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "profile/sampling.h"

namespace penstock::profile {

class Recorder {
 public:
  using Measure = std::function<Sample(const std::function<void()>& work, const Effort& effort)>;
  Recorder(comm::Communicator& world, const Effort& effort, Measure measure = profile::measure)
      : world_(world), effort_(effort), measure_(std::move(measure)), began_(steady_seconds()) {}

  // Collective. Returns the same value on every rank.
  Seconds seconds(const std::function<void()>& work);

  // From now on figures are taken between two measurements of this, which follows each; of nothing if it is
  // empty.
  void compare_with(std::function<void()> yardstick);

  // From now on the figures are those measured so far, in the same order: seconds() returns the mean of both
  // times, or the lesser if the other is more than a fifth longer. Both by the yardstick's median so far.
  void take_again();

  comm::Communicator& world() { return world_; }
  double disturbed() const { return repeats_ > 0 ? disturbed_ / repeats_ : 0; }
  double spread() const { return figures_ > 0 ? spread_ / figures_ : 0; }

 private:
  struct Figure {
    Seconds seconds = 0;
    Seconds yardstick = 0;  // around it; 0 without
  };
  Effort effort_now() const;
  Seconds yardstick_now() const;
  Figure measured(const std::function<void()>& work);
  // As if the yardstick had taken what it mostly takes.
  Seconds compared(const Figure& figure) const;

  comm::Communicator& world_;
  Effort effort_;
  Measure measure_;
  Seconds began_;
  std::function<void()> yardstick_;
  Seconds yardstick_took_ = 0;  // after the figure before
  Seconds usual_ = 0;           // of the yardstick, once known
  std::vector<Figure> first_;   // those of the first time, in their order
  std::size_t next_ = 0;
  bool again_ = false;
  double repeats_ = 0, disturbed_ = 0, spread_ = 0, figures_ = 0;
};

}  // namespace penstock::profile
