// SPDX-License-Identifier: Apache-2.0
// The ranks of a mesh as a table before it has a format: a row for each pipeline rank, a column for each rank
// of it, in rank order. Of a long axis the middle is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.h"

namespace penstock::report {

// A place on an axis: its index, or the first of so many that are left out.
struct MeshIndex {
  int index = 0;
  int left_out = 0;  // 0: none
};

// All of 0 .. size - 1; or of more than `most` + 1 the first ones, an entry for two or more that are left
// out, and the last. `most` is at least 2.
std::vector<MeshIndex> shown_indices(int size, int most);

struct MeshColumn {
  std::vector<MeshIndex> path;  // one for each level; the last one may stand for those left out, levels below
                                // it are then missing
  std::int64_t first = 0;       // its first rank in row 0
  bool left_out() const { return path.back().left_out > 0; }
};

struct MeshGrid {
  std::vector<mesh::Axis> levels;  // of the columns, the slowest first: axes longer than 1, or data alone
  std::vector<MeshColumn> columns;
  std::vector<MeshIndex> rows;  // pipeline ranks
};

struct MeshGridLimits {
  int columns = 24;  // but for those that stand for left-out ones; never fewer than 2 for each level
  int rows = 16;
};

MeshGrid mesh_grid(const mesh::Mesh& mesh, const MeshGridLimits& limits);

// The outermost level at which the column differs from the one before it.
std::size_t level_of_change(const MeshGrid& grid, std::size_t column);

// "16,384".
std::string with_commas(std::int64_t count);

// A kind of process group: how many groups there are, of how many ranks, and the first of them as lists.
struct GroupFacts {
  mesh::Group kind = mesh::Group::World;
  std::int64_t size = 1, groups = 1;
  std::int64_t most_nodes = 1;  // over which one of them is spread
  std::string first;            // "0-7", "0 8 16 24 | 1 9 17 25 | ..."
};

// Of all kinds, in the order in which a reader meets them. 0 ranks per node: all are on one.
std::vector<GroupFacts> group_facts(const mesh::Mesh& mesh, std::int64_t ranks_per_node);

// What the ranks of such a group have part of, or all have: "heads and ffn columns of a layer".
std::string_view meaning_of(mesh::Group group);

}  // namespace penstock::report
