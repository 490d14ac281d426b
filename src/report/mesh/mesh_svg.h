// SPDX-License-Identifier: Apache-2.0
// The ranks of a mesh as an SVG file: one row of cells per pipeline rank, frames around nodes, and for each
// kind of group with several ranks a small copy with its first group marked. Long axes are shortened
// (mesh_grid.h). Text follows the viewer's light or dark scheme; the background is transparent.
#pragma once

#include <string>

#include "report/mesh/mesh_picture.h"

namespace penstock::report {

std::string mesh_svg(const MeshPicture& picture);

}  // namespace penstock::report
