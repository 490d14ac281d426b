// SPDX-License-Identifier: Apache-2.0
// A thread that runs copy jobs one after the other, in parallel with the compute thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "base/units.h"

namespace penstock::train {

// Used by one thread. Jobs run in the order of posting. When one throws, no later one runs, and every wait
// for it or a later one rethrows the exception.
class CopyLane {
 public:
  struct Times {
    Seconds start = 0, end = 0;  // by steady_seconds()
  };

  CopyLane();
  ~CopyLane();  // waits for the running job; drops the others
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // The job's captures must live until it is done or the lane is destroyed. Returns its number, from 0.
  std::uint64_t post(std::function<void()> job);

  // Waits; returns when the job ran. Wait for the jobs in order, each once. Rethrows a job's exception.
  Times wait(std::uint64_t number);

  // Rethrows a job's exception; does not wait.
  void throw_failure();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // not begun
  std::deque<Times> done_;                  // not waited for yet
  std::uint64_t posted_ = 0;
  std::uint64_t asked_ = 0;
  std::exception_ptr failure_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace penstock::train
