// SPDX-License-Identifier: Apache-2.0
// What one device takes in a visit of the vocabulary (nn/vocabulary_visit.h), step by step, as
// model/action_memory.h does for actions.
#pragma once

#include "model/kernel_memory.h"
#include "model/shape.h"

namespace penstock::model {

struct VisitSize {
  Shape shape;
  std::int64_t devices = 1;  // that share the vocabulary
  bool last = true;  // the device of the last stage, where the gradients of the hidden states are added
  std::int64_t sequences = 1;
  Tokens tokens = 1;  // of the slice
  bool sliced = false;
  Tokens loss_tile = 512;
};

struct VisitMemory {
  Bytes temporary = 0;  // at their most
  Bytes growth = 0;  // of all together, at its most; the last stage's output, which the visit uses, included
  Bytes logits = 0;  // tiles of the device's columns, with what a product works on
  Bytes messages = 0;  // hidden states that arrive, partial gradients that leave or meet
};

VisitMemory visit_memory(const VisitSize& size, const KernelSetting& setting);

// Rows of each vocabulary matrix on each device, padding included.
std::int64_t shard_rows(const Shape& shape, std::int64_t devices);

}  // namespace penstock::model
