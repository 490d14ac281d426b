// SPDX-License-Identifier: Apache-2.0
#include "comm/ending/call_limit.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace penstock::comm {

CallLimit::CallLimit(std::string what, Seconds limit, std::function<void(const RunError&)> report) {
  constexpr Seconds kLongest = 1e8;  // about three years: the sum below stays inside the clock's range
  if (limit <= 0 || limit > kLongest) return;
  const auto watch = [this, limit, what = std::move(what), report = std::move(report)] {
    std::unique_lock lock(mutex_);
    if (change_.wait_for(lock, std::chrono::duration<double>(limit), [this] { return done_; })) return;
    report(RunError(what + " has taken " + print_seconds(limit) +
                    ": the process of another rank is stopped, or its host is lost"));
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(Exit::Failed));
  };
  try {
    watch_ = std::thread(watch);
  } catch (const std::system_error&) {
    // No thread: the call goes on without a limit, as it must in a destructor.
  }
}

CallLimit::~CallLimit() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  change_.notify_one();
  if (watch_.joinable()) watch_.join();
}

}  // namespace penstock::comm
