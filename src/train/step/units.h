// SPDX-License-Identifier: Apache-2.0
// The parameters of one rank by unit (schedule/units.h); a unit is gathered and reduced together.
#pragma once

#include <map>
#include <vector>

#include "nn/parameters/parameter.h"

namespace penstock::train {

struct Unit {
  std::vector<nn::Parameter*> parameters;
  bool sharded_weights = false;  // weights and gradients exist only while they are used
};
using Units = std::map<int, Unit>;  // by number

}  // namespace penstock::train
