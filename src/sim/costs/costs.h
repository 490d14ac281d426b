// SPDX-License-Identifier: Apache-2.0
// The interface of all costs: seconds and bytes of an op. Unit costs, tables, measurements and the analytic
// model implement it; what-if overrides wrap another implementation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::sim {

// The time of a message: it occupies the link between the two devices for `occupied` (bytes / bandwidth), one
// message after the other, and arrives `latency` later.
struct Transfer {
  Seconds occupied = 0;
  Seconds latency = 0;

  // Returns when a message sent at `start` arrives over a link that is free from `free` on; updates `free`.
  Seconds arrival(Seconds start, Seconds& free) const {
    free = std::max(free, start) + occupied;
    return free + latency;
  }
};

// Memory of one (stage, micro-batch, slice).
struct RecordBytes {
  Bytes record = 0;         // saved by F until B or I
  Bytes weight_record = 0;  // inputs of W, from I to W
  Bytes kv_gradient =
      0;  // accumulators of K,V gradients, from the micro-batch's first backward to the slice's own
  Bytes logits = 0;       // the kept loss gradient, from the end of F to the end of B or I
  Bytes handed_over = 0;  // the output of F, or of B or I, until a stage of the same device consumes it

  friend bool operator==(const RecordBytes&, const RecordBytes&) = default;
};

// Memory that an action takes while it runs.
struct ActionBytes {
  Bytes temporary = 0;  // peak of its temporaries
  Bytes growth = 0;     // peak of all memory over that at its start, without the messages it consumes;
                        // 0: unknown, then records count from the action's start
  Bytes logits = 0;     // tiles of logits
  Bytes messages = 0;   // the loss's own messages
};

// Of a stage whose weights and gradients exist only while in use (passes/shard.h).
struct StageBytes {
  Bytes weights = 0;
  Bytes gradients = 0;
};

// The attention part of an action's time, including the part that other devices may compute.
struct AttentionShare {
  Seconds seconds = 0;
  int layers = 1;  // layers over which it is spread evenly
};

// Bytes only. Called for every op, so implementations must be fast.
class MemoryCosts {
 public:
  virtual ~MemoryCosts() = default;
  virtual bool holds_bytes() const { return true; }  // false: every answer is 0
  virtual RecordBytes record(const schedule::Key& key) const = 0;
  virtual ActionBytes action(int /*device*/, const schedule::Op&) const { return {}; }
  virtual StageBytes stage(int /*number*/) const { return {}; }  // zeros if they are always there
};

// Implementations return finite values >= 0. They are called for every op, so they must be fast. `index` is
// the index into the device's ops.
class Costs : public MemoryCosts {
 public:
  virtual Seconds seconds(int device, std::uint32_t index,
                          const schedule::Op& op) const = 0;  // compute and copies
  // Exchange messages are not ops of the program: for them `send` has only kind, peer and bytes.
  virtual Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const = 0;
  virtual AttentionShare attention(int /*device*/, std::uint32_t /*index*/, const schedule::Op&) const {
    return {};
  }
  // The time the server would need for the whole attention of the owner's op (schedule/exchange.h).
  virtual AttentionShare served_attention(int /*server*/, int owner, std::uint32_t index,
                                          const schedule::Op& op) const {
    return attention(owner, index, op);
  }
  // Share of the attention of the owner's op. All halves count alike; the op's own keys count as one half.
  virtual double share_of_attention(const schedule::Exchange& exchange) const {
    return exchange.halves / static_cast<double>(2 * exchange.of.key.slice + 1);
  }
};

// Returns the value if it is finite and not negative; else throws InputError with the name.
Seconds checked_seconds(std::string_view name, Seconds value);

}  // namespace penstock::sim
