// SPDX-License-Identifier: Apache-2.0
// A thread that copies, one job after the other, beside the thread that computes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace penstock::train {

// Used by one thread. Jobs run in the order of posting. When one throws, no later one runs, and every wait
// for it or a later one throws what it threw.
class CopyLane {
 public:
  using Clock = std::chrono::steady_clock;
  struct Times {
    Clock::time_point start, end;
  };

  CopyLane();
  ~CopyLane();  // waits for the job that is running; drops those that have not begun
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // What a job uses must live until it is done or the lane is destroyed. Returns its number, from 0.
  std::uint64_t post(std::function<void()> job);

  // When the job ran. Numbers are asked for in order, each once. Throws what a job threw.
  Times wait(std::uint64_t number);

  // Throws what a job threw; does not wait.
  void throw_failure();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // not begun
  std::deque<Times> done_;                  // not asked for yet
  std::uint64_t posted_ = 0;
  std::uint64_t asked_ = 0;
  std::exception_ptr failure_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace penstock::train
