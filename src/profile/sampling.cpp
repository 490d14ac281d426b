// SPDX-License-Identifier: Apache-2.0
#include "profile/sampling.h"

#include <sys/resource.h>

#include <algorithm>
#include <vector>

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
  std::vector<Seconds> repeats;
  Sample sample;
  work();
  const Seconds began = steady_seconds();
  const auto wanted = [&] {
    const int done = static_cast<int>(repeats.size());
    return done < effort.least || (done < effort.most && steady_seconds() - began < effort.budget);
  };
  while (wanted()) {
    const long before = preemptions();
    const Seconds processor = processor_seconds_of_this_thread();
    const Seconds start = steady_seconds();
    work();
    const Seconds seconds = steady_seconds() - start;
    const Seconds own = processor_seconds_of_this_thread() - processor;
    const bool disturbed = preemptions() != before;
    sample.disturbed += disturbed;
    repeats.push_back(disturbed ? std::min(seconds, own) : seconds);
  }
  sample.repeats = static_cast<int>(repeats.size());
  std::sort(repeats.begin(), repeats.end());
  const auto at = [&](double share) {
    return repeats[static_cast<std::size_t>(share * static_cast<double>(repeats.size() - 1) + 0.5)];
  };
  sample.seconds = std::max(at(0.5), 1e-9);
  sample.spread = (at(0.75) - at(0.25)) / sample.seconds;
  return sample;
}

}  // namespace penstock::profile
