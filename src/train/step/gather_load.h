// SPDX-License-Identifier: Apache-2.0
// Gathers the choices of all ranks' routers at the end of a step.
#pragma once

#include <map>

#include "comm/groups.h"
#include "nn/stage.h"
#include "run/run.h"
#include "train/record/expert_load.h"

namespace penstock::train {

// For runs with experts; takes the router facts out of the stages. Losses are added in the order of layers
// and ranks, so their bits do not depend on how layers are cut into stages. Collective.
ExpertLoad gather_load(const run::Run& run, std::map<int, nn::Stage>& stages, comm::World world);

}  // namespace penstock::train
