// SPDX-License-Identifier: Apache-2.0
// Memory of one device in a visit of the vocabulary (nn/vocabulary_visit.h), step by step, as
// model/memory/action.h does for actions.
#pragma once

#include "model/memory/kernels.h"
#include "model/memory/layer_shards.h"
#include "model/shape.h"

namespace penstock::model {

// The vocabulary is cut into T parts for each of the stages' devices; each of their t ranks has T/t of them.
struct VisitSize {
  Shape shape;
  TensorSplit tensor;
  std::int64_t stages = 1;  // pipeline devices that share the vocabulary
  bool last = true;         // the last stage's device, which adds the gradients of the hidden states
  std::int64_t sequences = 1;
  Tokens tokens = 1;  // of the slice
  bool sliced = false;
  Tokens loss_tile = usual_loss_tile(false);
};

struct VisitMemory {
  Bytes temporary = 0;  // peak
  Bytes growth = 0;     // peak of the sum; includes the last stage's output, which the visit uses
  Bytes logits = 0;     // tiles of the device's columns, with the operands of a product
  Bytes messages = 0;   // hidden states received, partial gradients sent or added
};

VisitMemory visit_memory(const VisitSize& size, const KernelSetting& setting);

}  // namespace penstock::model
