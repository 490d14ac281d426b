// SPDX-License-Identifier: Apache-2.0
// Memory of a rank during a step, op by op.
#pragma once

#include "backend/ledger.h"
#include "run/record/step_timeline.h"

namespace penstock::train {

inline run::OpMemory memory_now(backend::Ledger& ledger) {
  run::OpMemory memory;
  for (int i = 0; i < model::kTensorCategories; ++i) {
    memory.live[i] = ledger.live(static_cast<model::Category>(i));
  }
  memory.peak = ledger.take_recent_peak();
  return memory;
}

}  // namespace penstock::train
