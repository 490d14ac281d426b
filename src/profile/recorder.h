// SPDX-License-Identifier: Apache-2.0
// Measures figures one by one on all ranks together, so that shared resources are shared as in training:
// ranks start a figure together, and its seconds are the mean over ranks. On a busy machine later figures get
// fewer repeats, so that a whole profile takes under two minutes. Disturbances of seconds, which all repeats
// of a figure would share, are met by taking figures once more later.
#pragma once

#include <vector>

#include "base/clock.h"
#include "comm/communicator.h"
#include "profile/sampling.h"

namespace penstock::profile {

class Recorder {
 public:
  Recorder(comm::Communicator& world, const Effort& effort)
      : world_(world), effort_(effort), began_(steady_seconds()) {}

  // Collective. Returns the same value on every rank.
  Seconds seconds(const std::function<void()>& work);

  // From now on the figures are those measured so far, in the same order: seconds() returns the mean of both
  // times, or the lesser if the other is more than a fifth longer.
  void take_again();

  comm::Communicator& world() { return world_; }
  double disturbed() const { return repeats_ > 0 ? disturbed_ / repeats_ : 0; }
  double spread() const { return figures_ > 0 ? spread_ / figures_ : 0; }

 private:
  Effort effort_now() const;

  comm::Communicator& world_;
  Effort effort_;
  Seconds began_;
  std::vector<Seconds> measured_;  // the time of each figure
  std::size_t next_ = 0;
  double repeats_ = 0, disturbed_ = 0, spread_ = 0, figures_ = 0;
};

}  // namespace penstock::profile
