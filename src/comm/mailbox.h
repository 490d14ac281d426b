// SPDX-License-Identifier: Apache-2.0
// How the threads of one process pass messages: each rank has a mailbox in which the two sides of a message
// meet. Whoever comes second copies the bytes, straight from the sender's buffer into the receiver's.
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

#include "comm/message.h"

namespace penstock::comm {

// Messages of one lane are first-in-first-out. Receivers have a mailbox each, so the lane does not name them.
struct Lane {
  int group = 0;
  int source = 0;  // rank of the world
  int channel = 0;
  auto operator<=>(const Lane&) const = default;
};

// One side of a message: the sender's bytes or the receiver's room. Stays where it is until done or
// withdrawn.
struct Side {
  enum class Phase { Waiting, Copying, Done };
  bool sending = false;
  const std::byte* source = nullptr;  // of a sender
  std::byte* room = nullptr;          // of a receiver
  std::size_t bytes = 0;
  std::size_t arrived = 0;  // the other side's length, once done
  Phase phase = Phase::Waiting;
};

class Mailbox {
 public:
  void post(const Lane& lane, Side& side);
  bool done(const Side& side);
  // Until the side is done, `stop` is set (somebody has called wake), or the deadline has passed.
  void wait(const Side& side, const Deadline& deadline, const std::atomic<bool>& stop);
  void wake();
  // Afterwards nobody touches the side or its buffer.
  void withdraw(const Lane& lane, Side& side);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Lane, std::deque<Side*>> waiting_;  // of one lane: senders only or receivers only
};

// What the ranks of one process share.
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

  // The number of the group that comes from the given split of a group and has the given leader in it. The
  // world's is 0.
  int group_number(int parent, int split, int leader);
  // True for the first failure, the one that all ranks get to hear of.
  bool fail(int rank, const std::string& reason);
  std::optional<Failure> failure();
  void throw_if_failed();  // PeerFailure

 private:
  std::deque<Mailbox> mailboxes_;  // a mailbox cannot move
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // for what follows
  std::optional<Failure> failure_;
  std::map<std::tuple<int, int, int>, int> groups_;
};

}  // namespace penstock::comm
