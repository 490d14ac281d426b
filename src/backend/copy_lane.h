// SPDX-License-Identifier: Apache-2.0
// Copies that run one after the other beside computation: on a thread of their own, on a card in a stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "backend/clock.h"

namespace penstock::backend {

// Used by one thread. Jobs run in the order of posting, each after what that thread has issued before. When
// one throws, no later one runs, and every wait for it or a later one rethrows the exception.
class CopyLane {
 public:
  struct Times {
    Moment start, end;
  };

  CopyLane();
  ~CopyLane();  // waits for the running job; drops the others
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // The job makes its copies by copy_bytes(); on the CPU it may do other work. What it copies must live until
  // it is done or the lane is destroyed. Returns its number, from 0.
  std::uint64_t post(std::function<void()> job);

  // What this thread issues from now on comes after the job; on the CPU this waits until the job has run.
  // Wait for the jobs in order, each once. Rethrows a job's exception.
  Times wait(std::uint64_t number);

  // Rethrows a job's exception; does not wait.
  void throw_failure();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::backend
