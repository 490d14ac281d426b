// SPDX-License-Identifier: Apache-2.0
#include "profile/sampling.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace penstock::profile {
namespace {

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point start) {
  return std::chrono::duration<Seconds>(Clock::now() - start).count();
}

// How often the core was taken from this thread so far.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// Processor time of this thread so far.
Seconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<Seconds>(time.tv_sec) + 1e-9 * static_cast<Seconds>(time.tv_nsec);
}

}  // namespace

Sample measure(const std::function<void()>& work, const Effort& effort) {
  std::vector<Seconds> repeats;
  Sample sample;
  work();
  const auto began = Clock::now();
  const auto wanted = [&] {
    const int done = static_cast<int>(repeats.size());
    return done < effort.least || (done < effort.most && since(began) < effort.budget);
  };
  while (wanted()) {
    const long before = preemptions();
    const Seconds processor = processor_time();
    const auto start = Clock::now();
    work();
    const Seconds seconds = since(start), own = processor_time() - processor;
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
