// SPDX-License-Identifier: Apache-2.0
// Notes on a rank's messages, for another thread that asks while the rank is stuck.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "comm/message.h"

namespace penstock::comm {

// Message counts between this rank and a peer on one channel, summed over all groups.
struct Passed {
  int peer = 0;  // world rank
  int channel = 0;
  std::int64_t sent = 0;      // posted
  std::int64_t received = 0;  // arrived
};

// Only the rank's thread writes; any thread may read.
class MessageNotes {
 public:
  struct Wait {
    Message message;
    Seconds since = 0;  // steady_seconds()
  };
  // The message that the rank waits for, or whose wait failed.
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

// While alive, the calling thread writes to `notes`. Without a scope nothing is noted.
class NotesScope {
 public:
  explicit NotesScope(MessageNotes& notes);
  ~NotesScope();
  NotesScope(const NotesScope&) = delete;
  NotesScope& operator=(const NotesScope&) = delete;

 private:
  MessageNotes* before_;
};

// While alive, messages that the calling thread posts are noted on this channel: a communicator that sends
// through another one notes the channel that its own caller knows. The outermost scope counts.
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

// A wait for the message; may be nested. A wait that ends with an exception stays noted.
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

void note_posted(const Message& message);
void note_done(const Message& message);

}  // namespace penstock::comm
