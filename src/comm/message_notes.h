// SPDX-License-Identifier: Apache-2.0
// What a rank's messages are doing, for another thread that asks while the rank is stuck in one.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "comm/message.h"

namespace penstock::comm {

// Messages between this rank and a peer on one channel, of all groups together.
struct Passed {
  int peer = 0;  // rank of the world
  int channel = 0;
  std::int64_t sent = 0;      // posted
  std::int64_t received = 0;  // arrived
};

// Written by the rank's thread, read by any.
class MessageNotes {
 public:
  struct Wait {
    Message message;
    Seconds since = 0;  // steady_seconds()
  };
  // The message that the rank waits for, or in whose wait it failed.
  std::optional<Wait> wait() const;
  std::vector<Passed> passed() const;

 private:
  friend class WaitScope;
  friend void note_posted(const Message& message);
  friend void note_done(const Message& message);

  mutable std::mutex mutex_;
  std::optional<Wait> wait_;
  std::map<std::pair<int, int>, Passed> passed_;  // by peer and channel
};

// Notes of the calling thread's rank, during the life of this object; without one nothing is noted.
class NotesScope {
 public:
  explicit NotesScope(MessageNotes& notes);
  ~NotesScope();
  NotesScope(const NotesScope&) = delete;
  NotesScope& operator=(const NotesScope&) = delete;

 private:
  MessageNotes* before_;
};

// Messages that the calling thread posts during the life of this object are noted on this channel: what a
// communicator sends by another one has the channel that its own caller knows. The outermost counts.
class NotedOn {
 public:
  explicit NotedOn(int channel);
  ~NotedOn();
  NotedOn(const NotedOn&) = delete;
  NotedOn& operator=(const NotedOn&) = delete;

 private:
  bool outermost_;
};
Message as_noted(Message message);

// A wait for the message, inside of other waits too. One that ends with an exception stays noted.
class WaitScope {
 public:
  explicit WaitScope(const Message& message);
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  int exceptions_;
  std::optional<MessageNotes::Wait> before_;
};

// Whether the calling thread is in one.
bool in_a_wait();

void note_posted(const Message& message);
void note_done(const Message& message);

}  // namespace penstock::comm
