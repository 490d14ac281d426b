// SPDX-License-Identifier: Apache-2.0
#include "backend/clock.h"

#include "base/clock.h"

namespace penstock::backend {

Moment moment_now() {
  Moment moment;
  moment.passed_ = steady_seconds();
  return moment;
}

Seconds DeviceClock::restart() { return began_ = steady_seconds(); }

Seconds DeviceClock::seconds(const Moment& moment) const { return moment.passed_ - began_; }

}  // namespace penstock::backend
