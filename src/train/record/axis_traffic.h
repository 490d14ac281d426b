// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>

#include "base/units.h"
#include "mesh/axis.h"

namespace penstock::train {

// Traffic of layers along one axis of the mesh in one step.
struct AxisTraffic {
  Bytes sent = 0;      // by all ranks
  Seconds waited = 0;  // by the rank that waited longest: exposed communication
};

// The axes along which layers communicate, by their groups. Records name an axis by its group.
inline constexpr std::array kLayerAxes{mesh::Group::Tensor, mesh::Group::Context, mesh::Group::Expert};

// Only axes with several ranks.
using LayerTraffic = std::map<mesh::Group, AxisTraffic>;

}  // namespace penstock::train
