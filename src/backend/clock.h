// SPDX-License-Identifier: Apache-2.0
// Times at which the compute device finishes the work a thread issued to it.
#pragma once

#include <memory>

#include "base/units.h"

namespace penstock::backend {

// A point in a thread's issued work. On the CPU it has already passed when it is created; on a GPU it is a
// stream event.
class Moment {
 public:
  Moment() = default;

 private:
  friend class DeviceClock;
  friend Moment moment_now();
  Seconds passed_ = 0;           // on the CPU: steady_seconds()
  std::shared_ptr<void> event_;  // on a GPU
};
Moment moment_now();  // on the calling thread's stream

class DeviceClock {
 public:
  // Waits for all work this thread has issued, makes that time 0 s, and returns it as a reading of
  // steady_seconds().
  Seconds restart();

  // Seconds since restart(), negative for earlier moments. Waits until the moment has passed.
  Seconds seconds(const Moment& moment) const;

 private:
  Seconds began_ = 0;
  Moment origin_;
};

}  // namespace penstock::backend
