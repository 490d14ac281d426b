// SPDX-License-Identifier: Apache-2.0
#include "backend/clock.h"

#include <c10/cuda/CUDAEvent.h>

#include "backend/copy.h"
#include "base/clock.h"

namespace penstock::backend {
namespace {

using Event = c10::cuda::CUDAEvent;
constexpr double kMilli = 1e-3;

}  // namespace

Moment moment_now() {
  const auto event = std::make_shared<Event>(cudaEventDefault);
  event->record();
  Moment moment;
  moment.event_ = event;
  return moment;
}

Seconds DeviceClock::restart() {
  synchronize();
  origin_ = moment_now();
  return began_ = steady_seconds();
}

Seconds DeviceClock::seconds(const Moment& moment) const {
  const auto& event = *static_cast<const Event*>(moment.event_.get());
  event.synchronize();
  return static_cast<const Event*>(origin_.event_.get())->elapsed_time(event) * kMilli;
}

}  // namespace penstock::backend
