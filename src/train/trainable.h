// SPDX-License-Identifier: Apache-2.0
// Settings that can be simulated and planned but not yet trained.
#pragma once

#include "run/run.h"

namespace penstock::train {

// Throws InputError naming the settings that the trainer does not support.
void require_trainable(const run::Run& run);

}  // namespace penstock::train
