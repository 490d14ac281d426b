// SPDX-License-Identifier: Apache-2.0
// A stream of a fake GPU, and a point of it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace penstock::testing {

// Does what is issued in order, each piece after a while.
class LaggingStream {
 public:
  explicit LaggingStream(unsigned seed) : random_(seed) {}
  ~LaggingStream() {
    issue({});  // the end
    thread_.join();
  }
  void issue(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    ++unfinished_;
    waiting_.push_back(std::move(work));
    changed_.notify_all();
  }
  // Whether all that was issued is done.
  bool idle() const { return unfinished_ == 0; }

 private:
  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !waiting_.empty(); });
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      if (!work) return;
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
      work();
      --unfinished_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::atomic<int> unfinished_ = 0;
  std::minstd_rand random_;
  std::thread thread_{[this] { run(); }};
};

// Of a stream, whose work sets it.
class StreamPoint {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    passed_ = true;
    changed_.notify_all();
  }
  bool is_set() {
    const std::lock_guard lock(mutex_);
    return passed_;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return passed_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool passed_ = false;
};

}  // namespace penstock::testing
