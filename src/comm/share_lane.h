// SPDX-License-Identifier: Apache-2.0
// Reduce-scatters (sums) and all-gathers of flat buffers over replicas that run while the caller computes:
// non-blocking, in queue order, a few pieces at a time, so that they need little workspace. All ranks of a
// group queue the same operations in the same order. One thread at a time; meanwhile the group's communicator
// may carry other messages on other channels.
//
// Sums are aligned binary trees over the ranks (communicator.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/message.h"

namespace penstock::comm {

// A buffer of equal length on every rank, split into one share per rank. The caller keeps it alive until the
// operation is done.
struct SharedBuffer {
  struct Share {
    std::int64_t begin = 0;  // elements
    std::int64_t count = 0;
  };
  std::byte* elements = nullptr;
  std::vector<Share> shares;  // [rank]
};

class ShareLane {
 public:
  // Pieces have at most `piece` elements of each share; `window` pieces are in flight.
  struct Limits {
    std::int64_t piece = 1 << 17;
    int window = 4;
  };
  // Elements of room for full-size pieces in sums over `ranks` ranks; no share is longer than `longest`.
  static std::int64_t room_for(const Limits& limits, int ranks, std::int64_t longest);

  using Ticket = std::int64_t;  // from 0, in queue order
  // Called when an operation begins and when it is done; may be empty.
  struct Watch {
    std::function<void(Ticket)> began, ended;
  };

  // `room` outlives the lane and has at least room_for elements of `type` (4 or 8 bytes).
  ShareLane(Type type, std::span<std::byte> room, const Limits& limits, int channel, Seconds timeout,
            Watch watch = {});

  // Each rank's share becomes the sum over the ranks; the rest of the buffers is then unspecified.
  Ticket sum(Communicator& ranks, std::vector<SharedBuffer> buffers, std::string name);
  // Each rank's share is copied to all ranks. `element`: bytes per element.
  Ticket gather(Communicator& ranks, std::vector<SharedBuffer> buffers, std::size_t element,
                std::string name);

  // Makes progress without waiting; returns whether there was any. Nested calls do nothing.
  bool advance();

  bool done(Ticket ticket) const { return ticket < done_; }
  bool idle() const { return operations_.empty(); }
  // Calls `meanwhile` between attempts; it returns whether it made progress. Throws RunError that names the
  // operation and the peer if nothing progresses for the timeout; rethrows a peer's failure with the
  // operation's name.
  void wait(Ticket ticket, const std::function<bool()>& meanwhile);

 private:
  struct Operation {
    Communicator* ranks = nullptr;
    std::vector<SharedBuffer> buffers;
    std::size_t element = 0;
    bool sums = false;
    std::string name;
    std::size_t buffer = 0;   // of the next piece
    std::int64_t offset = 0;  // of the next piece, in every share
    bool begun = false;
  };
  struct Part {
    Request request;
    Message message;
  };
  struct Piece {
    std::vector<Part> parts;
    std::size_t buffer = 0;
    std::int64_t offset = 0;  // in every share
    int slot = 0;             // in the room
  };

  Ticket queue(Communicator& ranks, Operation operation);
  bool move();
  bool begin_pieces();
  bool end_pieces();
  void begin_piece(Operation& operation, int slot);
  void exchange(Piece& piece, const Operation& operation, int peer);
  void sum_piece(const Operation& operation, const Piece& piece) const;
  std::int64_t piece_of(const Operation& operation) const;
  std::byte* room_of(const Operation& operation, int slot, int peer) const;

  Type type_;
  std::span<std::byte> room_;
  Limits limits_;
  int channel_;
  Seconds timeout_;
  Watch watch_;
  std::deque<Operation> operations_;
  std::deque<Piece> pieces_;  // of the first operation
  std::vector<int> free_slots_;
  Ticket queued_ = 0;
  Ticket done_ = 0;
  bool moving_ = false;
};

}  // namespace penstock::comm
