// SPDX-License-Identifier: Apache-2.0
// Memory of one device in a vocabulary visit (nn/vocabulary_visit.h), step by step, as model/memory/action.h
// does for actions.
#pragma once

#include "model/memory/kernels.h"
#include "model/memory/layer_shards.h"
#include "model/shape.h"

namespace penstock::model {

// The vocabulary is cut into T parts per device, for `stages` devices; each of a device's t ranks has T/t.
struct VisitSize {
  Shape shape;
  TensorSplit tensor;
  std::int64_t stages = 1;  // pipeline devices that share the vocabulary
  bool last = true;         // the last stage's device, whose output it is
  std::int64_t sequences = 1;
  Tokens tokens = 1;  // of the slice
  bool sliced = false;
  Tokens loss_tile = usual_loss_tile(false);
};

struct VisitMemory {
  Bytes temporary = 0;  // peak
  Bytes growth = 0;     // peak of the sum, including the last stage's output
  Bytes logits = 0;     // tiles of the device's columns
  Bytes messages = 0;   // received hidden states, partial gradients sent or summed
};

VisitMemory visit_memory(const VisitSize& size, const KernelSetting& setting);

// Bytes that a rank sends between stages in a visit: its column's rows of hidden states, their gradients in
// the accumulator type, and the rows that it gets to hand on or the sums that it returns, which are as many.
// `own_hidden`: of the last stage's output on one rank.
inline double visit_bytes(double own_hidden, Bytes element, Bytes accumulator) {
  return own_hidden * (2 + static_cast<double>(accumulator) / static_cast<double>(element));
}

}  // namespace penstock::model
