// SPDX-License-Identifier: Apache-2.0
// Measures figures one by one on all ranks together, so that shared resources are contended as in training:
// ranks start a figure together, and its seconds are the mean over ranks. On a busy machine later figures get
// fewer repeats, so that a whole profile takes under two minutes. A disturbance of a few seconds affects all
// repeats of a figure; therefore figures are measured again later.
//
// Other programs' load on a processor changes from second to second, which distorts comparisons between
// figures. So computation is compared with a yardstick, a product that is always the same: if the yardstick
// took a tenth longer than usual around a figure, the figure is scaled down accordingly.
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

  // From now on the yardstick is measured after every figure, so that each figure lies between two of its
  // measurements; empty: no yardstick.
  void compare_with(std::function<void()> yardstick);

  // Starts the second round, of the same figures in the same order: seconds() returns the mean of both
  // rounds, or the lesser if the other is over a fifth longer, both scaled by the yardstick's median so far.
  void take_again();

  comm::Communicator& world() { return world_; }
  const Effort& effort() const { return effort_; }
  double disturbed() const { return repeats_ > 0 ? disturbed_ / repeats_ : 0; }
  double spread() const { return figures_ > 0 ? spread_ / figures_ : 0; }

 private:
  struct Figure {
    Seconds seconds = 0;
    Seconds yardstick = 0;  // around it; 0 without one
  };
  Effort effort_now() const;
  Seconds yardstick_now() const;
  Figure measured(const std::function<void()>& work);
  // The figure's seconds, scaled to the yardstick's usual time if that is a factor of four at most.
  Seconds compared(const Figure& figure) const;

  comm::Communicator& world_;
  Effort effort_;
  Measure measure_;
  Seconds began_;
  std::function<void()> yardstick_;
  Seconds yardstick_took_ = 0;  // after the previous figure
  Seconds usual_ = 0;           // the yardstick's median, once known
  std::vector<Figure> first_;   // the first round's, in order
  std::size_t next_ = 0;
  bool again_ = false;
  double repeats_ = 0, disturbed_ = 0, spread_ = 0, figures_ = 0;
};

}  // namespace penstock::profile
