// SPDX-License-Identifier: Apache-2.0
// NCCL for tests, between threads whose GPU is a LaggingGpu: groups of two ranks. As NCCL's own, joining
// and destroying wait for the other rank, and so does a group's first message, in the call; later ones are in
// the stream's order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "comm/gpus/nccl.h"
#include "comm/lagging_gpu.h"

namespace penstock::testing {

class FakeNccl {
 public:
  // Of this object's groups, which it outlives.
  comm::Nccl functions() {
    comm::Nccl nccl;
    nccl.get_unique_id = [this](comm::Nccl::Id* id) {
      const std::lock_guard lock(mutex_);
      std::memset(id, 0, sizeof *id);
      std::snprintf(id->bytes, sizeof id->bytes, "group %d", next_++);
      return comm::Nccl::kSuccess;
    };
    nccl.init_rank = [this](comm::Nccl::Group* group, int ranks, comm::Nccl::Id id, int rank) {
      return join(group, ranks, id.bytes, rank);
    };
    nccl.send = [this](const void* data, std::size_t bytes, int, int, comm::Nccl::Group group, void* stream) {
      return move(group, true, const_cast<void*>(data), bytes, stream);
    };
    nccl.receive = [this](void* data, std::size_t bytes, int, int, comm::Nccl::Group group, void* stream) {
      return move(group, false, data, bytes, stream);
    };
    nccl.async_error = [this](comm::Nccl::Group, int* error) {
      *error = async_error;
      return comm::Nccl::kSuccess;
    };
    nccl.abort = [this](comm::Nccl::Group group) {
      static_cast<End*>(group)->pair->stop();
      ++ended;
      return comm::Nccl::kSuccess;
    };
    nccl.destroy = [abort = nccl.abort](comm::Nccl::Group group) {
      static_cast<End*>(group)->pair->leave();
      return abort(group);
    };
    nccl.text_of = [](int code) { return code == kRefused ? "the GPU refuses" : "an error of the network"; };
    return nccl;
  }

  static constexpr int kRefused = 5, kLost = 6;
  std::atomic<int> join_result = comm::Nccl::kSuccess;  // of the joins from now on
  std::atomic<int> joins_until_refused = -1;            // one join alone fails
  std::atomic<int> async_error = comm::Nccl::kSuccess;
  std::atomic<int> ended = 0;

  // Ends the calls that still wait for another rank.
  void stop() {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, pair] : pairs_) pair->stop();
  }

  // Messages that this thread has sent and nobody has received yet.
  int sent_here() {
    const std::lock_guard lock(mutex_);
    return sent_by_[std::this_thread::get_id()];
  }
  std::atomic<int> early = 0;  // receives, but for the first of a group, that came before what they receive

 private:
  struct Message {
    void* data;
    std::size_t bytes;
  };
  // Messages of two ranks meet here; the sender's stream waits until the receiver has copied.
  class Pair {
   public:
    void join() {
      wait([&] { return joined_ % 2 == 0; }, [&] { ++joined_; });
    }
    void connect() {
      wait([&] { return connected_ >= 2; }, [&] { ++connected_; });
    }
    void leave() {
      wait([&] { return left_ >= 2; }, [&] { ++left_; });
    }
    bool is_connected() {
      const std::lock_guard lock(mutex_);
      return connected_ >= 2;
    }
    // A message to a stream; false for a receive of what no stream has yet.
    bool give(bool sending) {
      const std::lock_guard lock(mutex_);
      given_ += sending ? 1 : -1;
      return given_ >= 0;
    }
    void send(const Message& message) {
      std::unique_lock lock(mutex_);
      sent_.push_back(message);
      const auto number = ++sends_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return copied_ >= number || stopped_; });
    }
    void receive(const Message& room) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !sent_.empty() || stopped_; });
      if (sent_.empty()) return;
      std::memcpy(room.data, sent_.front().data, room.bytes);
      sent_.pop_front();
      ++copied_;
      changed_.notify_all();
    }
    void stop() {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      changed_.notify_all();
    }

   private:
    template <class Ready, class Change>
    void wait(Ready&& ready, Change&& change) {
      std::unique_lock lock(mutex_);
      change();
      changed_.notify_all();
      changed_.wait(lock, [&] { return ready() || stopped_; });
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int joined_ = 0, connected_ = 0, left_ = 0;
    int given_ = 0;  // sends beyond receives
    std::deque<Message> sent_;
    std::size_t sends_ = 0, copied_ = 0;
    bool stopped_ = false;
  };
  struct End {
    std::shared_ptr<Pair> pair;
    bool connected = false;
  };

  int join(comm::Nccl::Group* group, int, const std::string& id, int) {
    if (join_result != comm::Nccl::kSuccess) return join_result;
    if (joins_until_refused-- == 0) return kRefused;
    std::shared_ptr<Pair> pair;
    End* end = nullptr;
    {
      const std::lock_guard lock(mutex_);
      auto& known = pairs_[id];
      if (!known) known = std::make_shared<Pair>();
      pair = known;
      end = &ends_.emplace_back(End{pair});
    }
    pair->join();
    *group = end;
    return comm::Nccl::kSuccess;
  }

  int move(comm::Nccl::Group group, bool sending, void* data, std::size_t bytes, void* stream) {
    auto& end = *static_cast<End*>(group);
    const bool first = !std::exchange(end.connected, true);
    if (first) end.pair->connect();
    if (!end.pair->give(sending) && !first) ++early;
    const std::thread::id sender = std::this_thread::get_id();
    if (sending) count(sender, 1);
    const auto work = [this, pair = end.pair, sending, sender, message = Message{data, bytes}] {
      sending ? pair->send(message) : pair->receive(message);
      if (sending) count(sender, -1);
    };
    static_cast<LaggingStream*>(stream)->issue(work);
    return comm::Nccl::kSuccess;
  }

  void count(std::thread::id sender, int change) {
    const std::lock_guard lock(mutex_);
    sent_by_[sender] += change;
  }

  std::mutex mutex_;
  int next_ = 0;
  std::map<std::string, std::shared_ptr<Pair>> pairs_;
  std::deque<End> ends_;
  std::map<std::thread::id, int> sent_by_;
};

}  // namespace penstock::testing
