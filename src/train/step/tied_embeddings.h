// SPDX-License-Identifier: Apache-2.0
// The gradient of a tied embedding is the sum of two buffers, one on each end of the pipeline.
#pragma once

#include <map>

#include "comm/groups.h"
#include "nn/stage.h"

namespace penstock::train {

// Blocks until the other side's device has also reached this point of the step.
void meet_tied_side(int peer, comm::Pipeline pipeline);

// Replaces the own parts of both sides' buffers by input side + output side, added in this order on any
// device, so that the bits do not depend on the number of devices. `peer` is the other side's device, or -1
// when this device has both. All sides call it at the same point of the step.
void reduce_tied_gradients(std::map<int, nn::Stage>& stages, int peer, comm::Pipeline pipeline);

}  // namespace penstock::train
