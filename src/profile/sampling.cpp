// SPDX-License-Identifier: Apache-2.0
#include "profile/sampling.h"

#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "backend/clock.h"
#include "backend/device.h"
#include "base/clock.h"

namespace penstock::profile {
namespace {

// Involuntary context switches of this thread so far.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

Sample measure(const std::function<void()>& work, const Effort& effort) {
  const bool on_cpu = backend::compute_device().is_cpu();
  backend::DeviceClock clock;
  clock.restart();
  std::vector<Seconds> repeats;
  Sample sample;
  const bool warm_up = !effort.once();
  if (warm_up) work();
  // Short work on a GPU is issued ahead, as in training.
  constexpr int kAhead = 8;
  constexpr Seconds kShort = 2e-3;
  const bool ahead = !on_cpu && warm_up && clock.seconds(backend::moment_now()) < kShort;
  const int calls = ahead ? kAhead : 1;
  const Seconds began = steady_seconds();
  const auto wanted = [&] {
    const int done = static_cast<int>(repeats.size());
    const Seconds passed = steady_seconds() - began;
    const int least = passed > effort.enough ? std::min(effort.least, 2) : effort.least;
    return done < least || (done < effort.most && passed < effort.budget);
  };
  while (wanted()) {
    const long before = preemptions();
    const Seconds own_before = processor_seconds_of_this_thread();
    clock.restart();
    for (int call = 0; call < calls; ++call) work();
    const Seconds seconds = clock.seconds(backend::moment_now()) / calls;
    const Seconds own = (processor_seconds_of_this_thread() - own_before) / calls;
    const bool disturbed = on_cpu && preemptions() != before;
    sample.disturbed += disturbed;
    repeats.push_back(disturbed && !effort.waits ? std::min(seconds, own) : seconds);
  }
  sample.repeats = static_cast<int>(repeats.size());
  std::sort(repeats.begin(), repeats.end());
  const auto at = [&](double share) {
    return repeats[static_cast<std::size_t>(share * static_cast<double>(repeats.size() - 1) + 0.5)];
  };
  sample.seconds = std::max(repeats.size() == 2 ? (repeats[0] + repeats[1]) / 2 : at(0.5), 1e-9);
  sample.spread = (at(0.75) - at(0.25)) / sample.seconds;
  return sample;
}

}  // namespace penstock::profile
