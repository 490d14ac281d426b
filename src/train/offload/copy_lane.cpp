// SPDX-License-Identifier: Apache-2.0
#include "train/offload/copy_lane.h"

#include "base/clock.h"
#include "base/error.h"

namespace penstock::train {

CopyLane::CopyLane() : thread_([this] { work(); }) {}

CopyLane::~CopyLane() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t CopyLane::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
  return posted_++;
}

CopyLane::Times CopyLane::wait(std::uint64_t number) {
  PENSTOCK_CHECK(number == asked_ && number < posted_, "copies of a lane are waited for in their order");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !done_.empty() || failure_; });
  if (done_.empty()) std::rethrow_exception(failure_);
  ++asked_;
  const Times times = done_.front();
  done_.pop_front();
  return times;
}

void CopyLane::throw_failure() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void CopyLane::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || (!jobs_.empty() && !failure_); });
    if (ending_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Times times{.start = steady_seconds()};
    std::exception_ptr thrown;
    try {
      job();
    } catch (...) {
      thrown = std::current_exception();
    }
    times.end = steady_seconds();
    lock.lock();
    thrown ? void(failure_ = thrown) : done_.push_back(times);
    changed_.notify_all();
  }
}

}  // namespace penstock::train
