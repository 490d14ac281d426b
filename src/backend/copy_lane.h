// SPDX-License-Identifier: Apache-2.0
// Copies that run in order, overlapped with computation: in a thread on the CPU, in a stream on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "backend/clock.h"

namespace penstock::backend {

// Used by one thread. Jobs run in the order of posting, each after the work that thread issued before. On a
// GPU post() throws a job's exception; on the CPU no later job runs, and waits for it or later ones rethrow.
class CopyLane {
 public:
  struct Times {
    Moment start, end;
  };

  CopyLane();
  ~CopyLane();  // waits for the running job, on a GPU for all jobs; drops the others
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // The job makes its copies by copy_bytes(); on the CPU it may do other work. The memory it copies must live
  // until it is done or the lane is destroyed. Returns the job's number, from 0.
  std::uint64_t post(std::function<void()> job);

  // Orders this thread's later work after the job; on the CPU it blocks until the job has run. Wait for the
  // jobs in order, each once. Rethrows a job's exception.
  Times wait(std::uint64_t number);

  // Rethrows a job's exception; does not wait.
  void throw_failure();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::backend
