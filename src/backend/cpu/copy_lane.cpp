// SPDX-License-Identifier: Apache-2.0
#include "backend/copy_lane.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/start_thread.h"

namespace penstock::backend {

struct CopyLane::State {
  void work();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;  // not started
  std::deque<Times> done;                  // finished, not yet waited for
  std::uint64_t posted = 0;
  std::uint64_t asked = 0;
  std::exception_ptr failure;
  bool ending = false;
  std::thread thread = start_thread("offloading copies", [this] { return std::thread([this] { work(); }); });
};

CopyLane::CopyLane() : state_(std::make_unique<State>()) {}

CopyLane::~CopyLane() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

std::uint64_t CopyLane::post(std::function<void()> job) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  state_->changed.notify_all();
  return state_->posted++;
}

CopyLane::Times CopyLane::wait(std::uint64_t number) {
  State& state = *state_;
  PENSTOCK_CHECK(number == state.asked && number < state.posted,
                 "copies of a lane are waited for in their order");
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return !state.done.empty() || state.failure; });
  if (state.done.empty()) std::rethrow_exception(state.failure);
  ++state.asked;
  const Times times = state.done.front();
  state.done.pop_front();
  return times;
}

void CopyLane::throw_failure() {
  const std::lock_guard lock(state_->mutex);
  if (state_->failure) std::rethrow_exception(state_->failure);
}

void CopyLane::State::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return ending || (!jobs.empty() && !failure); });
    if (ending) return;
    const std::function<void()> job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    Times times{.start = moment_now()};
    std::exception_ptr thrown;
    try {
      job();
    } catch (...) {
      thrown = std::current_exception();
    }
    times.end = moment_now();
    lock.lock();
    thrown ? void(failure = thrown) : done.push_back(times);
    changed.notify_all();
  }
}

}  // namespace penstock::backend
