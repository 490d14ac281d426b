// SPDX-License-Identifier: Apache-2.0
// What schedule.exchange = "auto" comes to.
#pragma once

#include "cli/resolve.h"

namespace penstock::cli {

// Simulates the run's step without context exchange, in pairs and levelled, takes the fastest (none where
// help is not possible or gains nothing) and says why in run.exchange_note. Options that are not "auto" stay.
void choose_exchange(ResolvedRun& run);

}  // namespace penstock::cli
