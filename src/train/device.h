// SPDX-License-Identifier: Apache-2.0
// Whether this program computes on the device that a run asks for.
#pragma once

#include "run/run.h"

namespace penstock::train {

// Throws InputError when train.device asks for another device than this program computes on, when the machine
// has no card, or when the run asks for what train does not do on one.
void require_device(const run::Run& run);

}  // namespace penstock::train
