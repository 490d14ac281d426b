// SPDX-License-Identifier: Apache-2.0
// Checks that this program can run on the device that a run asks for.
#pragma once

#include "run/run.h"

namespace penstock::train {

// Throws InputError if train.device names another device than this program computes on, if the machine has no
// GPU, or if the run asks for something that train does not support on a GPU.
void require_device(const run::Run& run);

}  // namespace penstock::train
