// SPDX-License-Identifier: Apache-2.0
// Memory of a rank during a step, op by op.
#pragma once

#include <array>

#include "nn/memory/ledger.h"

namespace penstock::train {

// Memory of one compute op.
struct OpMemory {
  std::array<Bytes, nn::kCategories> live{};  // [category], when it ended
  Bytes peak = 0;                             // peak total since the end of the previous compute op
};

inline OpMemory memory_now(nn::Ledger& ledger) {
  OpMemory memory;
  for (int i = 0; i < nn::kCategories; ++i) {
    memory.live[i] = ledger.live(static_cast<nn::Category>(i));
  }
  memory.peak = ledger.take_recent_peak();
  return memory;
}

}  // namespace penstock::train
