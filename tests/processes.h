// SPDX-License-Identifier: Apache-2.0
// Whether processes that a test has started, or that its programs have, are still there.
#pragma once

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace penstock {

// Programs with sanitizers take many times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSlowness = 10;
#else
inline constexpr double kSlowness = 1;
#endif
inline constexpr Seconds kPatience = 10 * kSlowness;  // until nothing of a run that failed is left

inline Seconds seconds_now() { return steady_seconds(); }

inline void sleep_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// Running, not merely waiting for its parent to take note of its end.
inline bool is_running(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z" && state != "X";
}

// Those of the processes that are still running when kPatience has passed. mpirun ends its ranks with a
// signal and may itself be gone before they are.
inline std::vector<int> left_running(std::vector<int> processes) {
  const Seconds until = seconds_now() + kPatience;
  while (std::ranges::any_of(processes, is_running) && seconds_now() < until) sleep_a_little();
  std::erase_if(processes, [](int process) { return !is_running(process); });
  return processes;
}

}  // namespace penstock
