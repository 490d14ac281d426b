// SPDX-License-Identifier: Apache-2.0
// Memory of a rank during a step, op by op.
#pragma once

#include <array>

#include "backend/ledger.h"

namespace penstock::train {

// Memory of one compute op.
struct OpMemory {
  std::array<Bytes, backend::kCategories> live{};  // [category], at the op's end
  Bytes peak = 0;                                  // peak total since the end of the previous compute op
};

inline OpMemory memory_now(backend::Ledger& ledger) {
  OpMemory memory;
  for (int i = 0; i < backend::kCategories; ++i) {
    memory.live[i] = ledger.live(static_cast<model::Category>(i));
  }
  memory.peak = ledger.take_recent_peak();
  return memory;
}

}  // namespace penstock::train
