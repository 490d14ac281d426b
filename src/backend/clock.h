// SPDX-License-Identifier: Apache-2.0
// When the compute device has done what a thread issued to it.
#pragma once

#include <memory>

#include "base/units.h"

namespace penstock::backend {

// A point in the order of what a thread has issued. On the CPU it has passed when it is made; on a card it is
// an event of a stream.
class Moment {
 public:
  Moment() = default;

 private:
  friend class DeviceClock;
  friend Moment moment_now();
  Seconds passed_ = 0;           // on the CPU: steady_seconds()
  std::shared_ptr<void> event_;  // on a card
};
Moment moment_now();  // of the calling thread's stream

class DeviceClock {
 public:
  // 0 s is now, when the device has done all that this thread has issued; returns that reading of
  // steady_seconds().
  Seconds restart();

  // Seconds since restart(), negative of earlier moments. Waits until the moment has passed.
  Seconds seconds(const Moment& moment) const;

 private:
  Seconds began_ = 0;
  Moment origin_;
};

}  // namespace penstock::backend
