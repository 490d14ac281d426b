// SPDX-License-Identifier: Apache-2.0
// A time limit for library calls that wait for other ranks and cannot be interrupted, such as MPI_Init_thread
// when another rank's process is stopped.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/units.h"

namespace penstock::comm {

class CallLimit {
 public:
  // Unless this object is destroyed within `limit` seconds, its thread calls report("WHAT has taken 120 s:
  // ...") and ends the process with exit code 3; the launcher then ends the others. 0: no limit.
  CallLimit(std::string what, Seconds limit, std::function<void(const RunError&)> report);
  ~CallLimit();
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  bool done_ = false;
  std::thread watch_;
};

}  // namespace penstock::comm
