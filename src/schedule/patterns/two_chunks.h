// SPDX-License-Identifier: Apache-2.0
// A device with two chunks, as in zb-v, dualpipe and dualpipe-v: their phases are written down as calls, and
// the micro-batch of each call is the chunk's next.
#pragma once

#include <vector>

#include "schedule/patterns/phases.h"

namespace penstock::schedule {

class TwoChunks {
 public:
  // A chunk's stage and the micro-batches it runs. Calls beyond the last one leave no action: the papers ask
  // for a least number of micro-batches, and since micro-batches do not depend on each other, fewer are what
  // remains of that many.
  struct Chunk {
    int stage;
    int first_micro_batch;
    int micro_batches;
  };

  TwoChunks(Chunk first, Chunk second);

  void forward(int chunk);
  void backward(int chunk);
  void backward_input(int chunk);  // its W is owed from now on
  void backward_weight();          // the longest owed, of either chunk; nothing when none is owed

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

// Where a V shape puts its stages: the first chunks go down the devices, the second ones come back up.
inline TwoChunks v_shape(int rank, int devices, int micro_batches) {
  return TwoChunks({rank, 0, micro_batches}, {2 * devices - 1 - rank, 0, micro_batches});
}

}  // namespace penstock::schedule
