// SPDX-License-Identifier: Apache-2.0
// Polls without starving ranks on the same core: retries at once for a few microseconds, then yields, then
// sleeps.
#pragma once

#include <sched.h>
#include <unistd.h>

namespace penstock::comm {

class Backoff {
 public:
  void pause() {
    ++pauses_;
    if (pauses_ > kYieldsUntil) {
      ::usleep(20);  // about 70 microseconds with the kernel's timer slack
    } else if (pauses_ > kSpinsUntil) {
      ::sched_yield();
    }
  }
  void restart() { pauses_ = 0; }

 private:
  static constexpr int kSpinsUntil = 30;
  static constexpr int kYieldsUntil = 200;
  int pauses_ = 0;
};

}  // namespace penstock::comm
