// SPDX-License-Identifier: Apache-2.0
// Errors when a GPU runs out of memory.
#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "backend/ledger.h"
#include "base/error.h"
#include "base/units.h"
#include "run/run.h"

namespace penstock::train {

// Suggests settings that fit in `room` bytes of a GPU; if the run itself was predicted to fit, settings
// predicted to need a tenth less.
std::string settings_within(const run::Run& run, Bytes room);

// Error that tells what the ledger's rank holds on its GPU, and settings that would fit.
RunError out_of_device_memory(const run::Run& run, const backend::Ledger& ledger);

// Returns the work's result; throws out_of_device_memory() if the GPU has no memory left.
template <class Work>
auto within_device_memory(const run::Run& run, const backend::Ledger& ledger, Work&& work) {
  try {
    return work();
  } catch (const c10::OutOfMemoryError&) {
    throw out_of_device_memory(run, ledger);
  }
}

}  // namespace penstock::train
