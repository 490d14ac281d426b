// SPDX-License-Identifier: Apache-2.0
// One figure after the other, on all ranks together, so that what they share is shared as in training: they
// begin a figure together, and its seconds are the mean over them. Where a busy machine makes all of it last,
// later figures get fewer repeats: a whole profile stays under two minutes.
#pragma once

#include <chrono>

#include "comm/communicator.h"
#include "profile/sampling.h"

namespace penstock::profile {

class Recorder {
 public:
  Recorder(comm::Communicator& world, const Effort& effort)
      : world_(world), effort_(effort), began_(std::chrono::steady_clock::now()) {}

  // Collective. The same on every rank.
  Seconds seconds(const std::function<void()>& work);

  comm::Communicator& world() { return world_; }
  double disturbed() const { return repeats_ > 0 ? disturbed_ / repeats_ : 0; }
  double spread() const { return figures_ > 0 ? spread_ / figures_ : 0; }

 private:
  Effort effort_now() const;

  comm::Communicator& world_;
  Effort effort_;
  std::chrono::steady_clock::time_point began_;
  double repeats_ = 0, disturbed_ = 0, spread_ = 0, figures_ = 0;
};

}  // namespace penstock::profile
