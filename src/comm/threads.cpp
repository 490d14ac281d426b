// SPDX-License-Identifier: Apache-2.0
#include "comm/threads.h"

#include <string>
#include <thread>
#include <vector>

#include "comm/thread_communicator.h"

namespace penstock::comm {
namespace {

class RankThreads {
 public:
  RankThreads(int ranks, const std::function<void(Communicator&)>& body, const FailureReport& report)
      : world_(std::make_shared<ThreadWorld>(ranks)), body_(body), report_(report) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < world_->size() && begin(rank, threads);) ++rank;
    }
    if (first_) std::rethrow_exception(first_);
    if (const auto failure = world_->failure()) throw PeerFailure(failure->rank, failure->reason);
  }

 private:
  // Fails the world if the thread cannot start: started ranks would wait for it.
  bool begin(int rank, std::vector<std::jthread>& threads) try {
    threads.emplace_back([this, rank] { run_rank(rank); });
    return true;
  } catch (const std::exception& error) {  // no thread, or no memory for its handle
    const std::string reason = std::string("cannot be started as a thread: ") + error.what();
    std::lock_guard lock(mutex_);
    world_->fail(rank, reason);
    if (world_->failure()->rank == rank) {
      first_ = std::make_exception_ptr(
          RunError("rank " + std::to_string(rank) + " of " + std::to_string(world_->size()) + " " + reason +
                   "; start fewer, or allow more processes (ulimit -u, a container's limit) or memory"));
    }
    return false;
  }

  void run_rank(int rank) {
    try {
      body_(*make_thread_rank(world_, rank));
    } catch (const std::exception& failure) {
      failed(rank, failure);
    } catch (...) {
      failed(rank, RunError("an exception that is not a std::exception"));
    }
  }

  // Called inside a handler: the current exception is the failure.
  void failed(int rank, const std::exception& failure) {
    std::lock_guard lock(mutex_);
    if (report_) report_(rank, failure);
    world_->fail(rank, failure.what());
    if (world_->failure()->rank == rank) first_ = std::current_exception();
  }

  std::shared_ptr<ThreadWorld> world_;
  const std::function<void(Communicator&)>& body_;
  const FailureReport& report_;
  std::mutex mutex_;  // serialises reports
  std::exception_ptr first_;
};

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& body, const FailureReport& report) {
  PENSTOCK_CHECK(ranks >= 1, "a group has a rank");
  RankThreads(ranks, body, report).run();
}

}  // namespace penstock::comm
