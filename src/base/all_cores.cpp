// SPDX-License-Identifier: Apache-2.0
#include "base/all_cores.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/interruption.h"
#include "base/start_thread.h"

namespace penstock {
namespace {

// Thrown to end a call whose result is no longer needed.
struct Abandoned {};

thread_local const std::atomic<bool>* abandoned = nullptr;

void ask_whether_abandoned() {
  if (abandoned->load(std::memory_order_relaxed)) throw Abandoned{};
}

class Loop {
 public:
  Loop(std::size_t count, const std::function<void(std::size_t, std::size_t)>& work)
      : count_(count), work_(work) {}

  void run() {
    const std::size_t threads = std::min(core_count(), std::max<std::size_t>(count_, 1));
    running_ = threads - 1;            // set before any of them can end
    std::vector<std::jthread> others;  // joined even if this throws
    try {
      for (std::size_t thread = 1; thread < threads; ++thread)
        start_thread("work on all cores", [&] { others.emplace_back([this, thread] { assist(thread); }); });
      take(0);
      wait();
    } catch (...) {
      abandoned_ = true;
      throw;
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void take(std::size_t thread) {
    for (std::size_t i = next_++; i < count_ && !abandoned_; i = next_++) work_(i, thread);
  }

  void assist(std::size_t thread) {
    abandoned = &abandoned_;
    interruption_question = ask_whether_abandoned;
    try {
      take(thread);
    } catch (const Abandoned&) {
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      abandoned_ = true;
    }
    const std::lock_guard lock(mutex_);
    --running_;
    ended_.notify_one();
  }

  // The question may block (on an interpreter's lock), so it is asked without the mutex.
  void wait() {
    constexpr std::chrono::milliseconds kBetweenQuestions{5};
    for (std::unique_lock lock(mutex_);
         !ended_.wait_for(lock, kBetweenQuestions, [this] { return running_ == 0; });) {
      lock.unlock();
      allow_interruption();
      lock.lock();
    }
  }

  const std::size_t count_;
  const std::function<void(std::size_t, std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> abandoned_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;     // threads other than the caller's
  std::exception_ptr failure_;  // from one of them
};

}  // namespace

std::size_t core_count() {
  constexpr std::size_t kMost = 16;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMost);
}

void on_all_cores(std::size_t count, const std::function<void(std::size_t, std::size_t)>& work) {
  Loop(count, work).run();
}

}  // namespace penstock
