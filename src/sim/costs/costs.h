// SPDX-License-Identifier: Apache-2.0
// The interface of all costs: seconds and bytes of an op. Unit costs, tables, measurements and the analytic
// model implement it; what-if overrides wrap another one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::sim {

// How a message travels: it holds the link between the two devices for `occupied` (bytes / bandwidth), one
// message after the other, and arrives `latency` after that.
struct Transfer {
  Seconds occupied = 0;
  Seconds latency = 0;

  // When a message sent at `start` arrives, over a link that is free from `free` on; moves that on.
  Seconds arrival(Seconds start, Seconds& free) const {
    free = std::max(free, start) + occupied;
    return free + latency;
  }
};

// Memory of one (stage, micro-batch, slice).
struct RecordBytes {
  Bytes record = 0;         // saved by F until B, or until I
  Bytes weight_record = 0;  // what W needs, from I to W
  Bytes kv_gradient =
      0;  // accumulators of K,V gradients, from the micro-batch's first backward to the slice's own
  Bytes logits = 0;       // the kept gradient of the loss, from the end of F to the end of B or I
  Bytes handed_over = 0;  // F's output and B's or I's, while a stage of the same device has yet to take them

  friend bool operator==(const RecordBytes&, const RecordBytes&) = default;
};

// What an action takes while it runs.
struct ActionBytes {
  Bytes temporary = 0;  // temporaries at their most
  Bytes growth = 0;     // of everything together over what was there at its start, messages that it uses up
                        // not counted; 0: unknown, then records stand from the action's start
  Bytes logits = 0;     // tiles of logits
  Bytes messages = 0;   // what the loss's own messages carry
};

// Of a stage whose weights and gradients are there only while they are used (passes/shard.h).
struct StageBytes {
  Bytes weights = 0;
  Bytes gradients = 0;
};

// The part of an action's time that is attention, including what other devices may compute of it.
struct AttentionShare {
  Seconds seconds = 0;
  int layers = 1;  // among which it is spread evenly
};

// How many bytes? Called for every op: keep implementations quick.
class MemoryCosts {
 public:
  virtual ~MemoryCosts() = default;
  virtual bool holds_bytes() const { return true; }  // false: every answer is 0
  virtual RecordBytes record(const schedule::Key& key) const = 0;
  virtual ActionBytes action(int /*device*/, const schedule::Op&) const { return {}; }
  virtual StageBytes stage(int /*number*/) const { return {}; }  // zeros when they are always there
};

// Implementations answer with finite values that are not negative, and are called for every op: keep them
// quick. `index` is the op's place among the device's ops.
class Costs : public MemoryCosts {
 public:
  virtual Seconds seconds(int device, std::uint32_t index,
                          const schedule::Op& op) const = 0;  // compute and copies
  // Messages of exchange are no ops of the program: they come as a send with peer and bytes alone.
  virtual Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const = 0;
  virtual AttentionShare attention(int /*device*/, std::uint32_t /*index*/, const schedule::Op&) const {
    return {};
  }
  // What the server takes for the whole attention of the owner's op (schedule/exchange.h).
  virtual AttentionShare served_attention(int /*server*/, int owner, std::uint32_t index,
                                          const schedule::Op& op) const {
    return attention(owner, index, op);
  }
  // Of the attention of the owner's op. Halves of slices count alike, and the op's own keys as one of them.
  virtual double share_of_attention(const schedule::Exchange& exchange) const {
    return exchange.halves / static_cast<double>(2 * exchange.of.key.slice + 1);
  }
};

// The value, when it is finite and not negative; throws InputError naming it otherwise.
Seconds checked_seconds(std::string_view name, Seconds value);

}  // namespace penstock::sim
