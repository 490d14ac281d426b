// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>

#include "base/units.h"
#include "mesh/axis.h"

namespace penstock::train {

// What layers exchange along one axis of the mesh in one step.
struct AxisTraffic {
  Bytes sent = 0;      // by all ranks
  Seconds waited = 0;  // for it, by the rank that waited longest: exposed communication
};

// Those axes, by their groups. What is written of one has its group's name.
inline constexpr std::array kLayerAxes{mesh::Group::Tensor, mesh::Group::Context, mesh::Group::Expert};

// Of those axes that have several ranks.
using LayerTraffic = std::map<mesh::Group, AxisTraffic>;

}  // namespace penstock::train
