// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/two_chunks.h"

namespace penstock::schedule {

TwoChunks::TwoChunks(Chunk first, Chunk second) : chunks_{first, second} {
  order_.reserve(3 * (first.micro_batches + second.micro_batches));
}

void TwoChunks::append(Kind kind, int chunk, int index) {
  const Chunk& c = chunks_[chunk];
  if (index < c.micro_batches) order_.push_back({c.stage, c.first_micro_batch + index, 0, kind, false});
}

void TwoChunks::forward(int chunk) { append(Kind::Forward, chunk, forwards_[chunk]++); }

void TwoChunks::backward(int chunk) { append(Kind::Backward, chunk, backwards_[chunk]++); }

void TwoChunks::backward_input(int chunk) {
  owed_.push_back({chunk, backwards_[chunk]});
  append(Kind::BackwardInput, chunk, backwards_[chunk]++);
}

void TwoChunks::backward_weight() {
  if (!owes_weights()) return;
  const Owed owed = owed_[paid_++];
  append(Kind::BackwardWeight, owed.chunk, owed.index);
}

void TwoChunks::overlap(int forward_chunk, int backward_chunk) {
  const bool both = forwards_[forward_chunk] < chunks_[forward_chunk].micro_batches &&
                    backwards_[backward_chunk] < chunks_[backward_chunk].micro_batches;
  forward(forward_chunk);
  if (both) order_.back().overlaps_next = true;
  backward(backward_chunk);
}

}  // namespace penstock::schedule
