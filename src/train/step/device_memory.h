// SPDX-License-Identifier: Apache-2.0
// The end of a card's memory.
#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "backend/ledger.h"
#include "base/error.h"
#include "base/units.h"
#include "run/run.h"

namespace penstock::train {

// Settings that would fit in `room` bytes of a card; if the run was predicted to fit there itself, settings
// predicted to need a tenth less.
std::string settings_within(const run::Run& run, Bytes room);

// What the rank of the ledger holds of its card, and settings that would fit.
RunError out_of_device_memory(const run::Run& run, const backend::Ledger& ledger);

// The work's result; throws that error when the card has no memory left.
template <class Work>
auto within_device_memory(const run::Run& run, const backend::Ledger& ledger, Work&& work) {
  try {
    return work();
  } catch (const c10::OutOfMemoryError&) {
    throw out_of_device_memory(run, ledger);
  }
}

}  // namespace penstock::train
