// SPDX-License-Identifier: Apache-2.0
// A device with two chunks, as in zb-v, dualpipe and dualpipe-v. Generators write their phases as calls; each
// call runs the chunk's next micro-batch.
#pragma once

#include <vector>

#include "schedule/patterns/phases.h"

namespace penstock::schedule {

class TwoChunks {
 public:
  // A chunk's stage and its micro-batches. Calls beyond the last micro-batch add no action: the papers need a
  // minimum number of micro-batches, and as micro-batches are independent, the schedule for fewer is that one
  // with the surplus removed.
  struct Chunk {
    int stage;
    int first_micro_batch;
    int micro_batches;
  };

  TwoChunks(Chunk first, Chunk second);

  void forward(int chunk);
  void backward(int chunk);
  void backward_input(int chunk);  // its W is pending from then on
  void backward_weight();          // the oldest pending W of both chunks; no-op if none is pending

  // The forward of one chunk runs together with the backward of the other.
  void overlap(int forward_chunk, int backward_chunk);

  int forwards(int chunk) const { return forwards_[chunk]; }  // calls so far
  bool owes_weights() const { return paid_ < owed_.size(); }

  Order take() { return std::move(order_); }

 private:
  void append(Kind kind, int chunk, int index);

  Chunk chunks_[2];
  int forwards_[2] = {0, 0};
  int backwards_[2] = {0, 0};
  struct Owed {
    int chunk, index;
  };
  std::vector<Owed> owed_;
  std::size_t paid_ = 0;
  Order order_;
};

// Stage placement of a V: the first chunks go down the devices, the second chunks come back up.
inline TwoChunks v_shape(int rank, int devices, int micro_batches) {
  return TwoChunks({rank, 0, micro_batches}, {2 * devices - 1 - rank, 0, micro_batches});
}

}  // namespace penstock::schedule
