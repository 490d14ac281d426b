// SPDX-License-Identifier: Apache-2.0
// What a rank held while it carried out a step, op by op.
#pragma once

#include <array>

#include "nn/ledger.h"

namespace penstock::train {

// Of one compute op.
struct OpMemory {
  std::array<Bytes, nn::kCategories> live{};  // [category], when it ended
  Bytes peak = 0;                             // greatest total since the compute op before it ended
};

inline OpMemory memory_now(nn::Ledger& ledger) {
  OpMemory memory;
  for (int i = 0; i < nn::kCategories; ++i) {
    memory.live[static_cast<std::size_t>(i)] = ledger.live(static_cast<nn::Category>(i));
  }
  memory.peak = ledger.take_recent_peak();
  return memory;
}

}  // namespace penstock::train
