// SPDX-License-Identifier: Apache-2.0
// Message passing between the threads of one process: each rank has a mailbox in which the two sides of a
// message meet. The later side copies the bytes from the sender's buffer directly into the receiver's. For
// GPU memory it issues the copy after the work that both sides have issued before.
#pragma once

#include <atomic>
#include <compare>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "backend/device_memory.h"
#include "comm/message.h"

namespace penstock::comm {

// Messages of one queue are first-in-first-out. Each receiver has its own mailbox, so a queue does not name
// the receiver.
struct Queue {
  int group = 0;
  int source = 0;  // world rank
  int channel = 0;
  auto operator<=>(const Queue&) const = default;
};

// One side of a message: the sender's bytes or the receiver's buffer. Must not move until done or withdrawn.
struct Side {
  enum class Phase { Waiting, Copying, Done };
  bool sending = false;
  const std::byte* source = nullptr;  // of a sender
  std::byte* room = nullptr;          // of a receiver
  std::size_t bytes = 0;
  std::size_t arrived = 0;  // the other side's length, once done
  Phase phase = Phase::Waiting;
  // For GPU memory. `ready`: after the work that wrote the bytes or last used the room. `copied`: after the
  // copy, once done.
  backend::DeviceMemory::Point ready = {}, copied = {};
};

class Mailbox {
 public:
  // Throws what the copy throws; the other side then keeps waiting.
  void post(const Queue& queue, Side& side);
  bool done(const Side& side);
  // Returns when the side is done, `stop` is set (wake was called), or the deadline has passed.
  void wait(const Side& side, const Deadline& deadline, const std::atomic<bool>& stop);
  void wake();
  // The side and its buffer are not used afterwards.
  void withdraw(const Queue& queue, Side& side);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Queue, std::deque<Side*>> waiting_;  // per queue only senders or only receivers
};

// State shared by the ranks of one process.
class ThreadWorld {
 public:
  struct Failure {
    int rank = 0;
    std::string reason;
  };

  explicit ThreadWorld(int ranks) : mailboxes_(ranks) {}
  int size() const { return static_cast<int>(mailboxes_.size()); }
  Mailbox& mailbox(int rank) { return mailboxes_[rank]; }
  const std::atomic<bool>& failed() const { return failed_; }

  // The number of the group created by this split of the parent group with this leader. The world is 0.
  int group_number(int parent, int split, int leader);
  // Returns true for the first failure, which all ranks receive.
  bool fail(int rank, const std::string& reason);
  std::optional<Failure> failure();
  void throw_if_failed();  // PeerFailure

 private:
  std::deque<Mailbox> mailboxes_;  // deque: a mailbox cannot move
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards the members below
  std::optional<Failure> failure_;
  std::map<std::tuple<int, int, int>, int> groups_;
};

}  // namespace penstock::comm
