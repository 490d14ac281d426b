// SPDX-License-Identifier: Apache-2.0
// Whether this program computes on the device that a run asks for.
#pragma once

#include "run/run.h"

namespace penstock::train {

// Throws InputError when the device of train.device is not what this program computes on or not there, or
// when a card cannot do what the run asks for yet.
void require_device(const run::Run& run);

}  // namespace penstock::train
