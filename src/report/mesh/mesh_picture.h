// SPDX-License-Identifier: Apache-2.0
// The ranks of a mesh and their groups, as text for a terminal and as JSON; mesh_svg.h draws them.
#pragma once

#include <cstdint>
#include <string>

#include "mesh/mesh.h"

namespace penstock::report {

struct MeshPicture {
  mesh::Mesh mesh;                  // must pass mesh::validate()
  std::int64_t ranks_per_node = 0;  // 0: nodes are not shown
};

// One line per pipeline rank with its ranks under their coordinates, "┃" where the next rank is on another
// node; then one line per kind of group. Long axes are shortened (mesh_grid.h). Lines end with "\n".
std::string mesh_text(const MeshPicture& picture);

// All ranks with coordinates and nodes, all groups of each kind: {"sizes": {"pipeline": 2, ...}, "world": 4,
// "ranks_per_node": null, "ranks": [{"rank": 0, "pipeline": 0, "data": 0, "context": 0, "tensor": 0}, ...],
// "groups": {"tensor": [[0], ...], ...}}.
std::string mesh_json(const MeshPicture& picture);

// "8 ranks: pipeline 2, data 2, tensor 2; 1 node of 8", without axes of size 1.
std::string mesh_title(const MeshPicture& picture);

// "rank = (pipeline · 2 + data) · 2 + tensor".
std::string mesh_formula(const mesh::Mesh& mesh);

}  // namespace penstock::report
