// SPDX-License-Identifier: Apache-2.0
// The ranks of a mesh as a table, independent of its format: one row per pipeline rank, one column per rank
// in it, in rank order. The middle of a long axis is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.h"

namespace penstock::report {

// An index on an axis, or the first of several that are left out.
struct MeshIndex {
  int index = 0;
  int left_out = 0;  // how many are left out; 0: shows `index`
};

// All of 0 .. size - 1; or, if these are more than `most` + 1, the first ones, one entry for two or more that
// are left out, and the last. `most` is at least 2.
std::vector<MeshIndex> shown_indices(int size, int most);

struct MeshColumn {
  std::vector<MeshIndex> path;  // one per level; the last may stand for left-out indices, then without the
                                // levels below it
  std::int64_t first = 0;       // its first rank in row 0
  bool left_out() const { return path.back().left_out > 0; }
};

struct MeshGrid {
  std::vector<mesh::Axis> levels;  // of the columns, slowest first: axes longer than 1, or data alone
  std::vector<MeshColumn> columns;
  std::vector<MeshIndex> rows;  // pipeline ranks
};

struct MeshGridLimits {
  int columns = 24;  // not counting left-out ones; at least 2 per level
  int rows = 16;
};

MeshGrid mesh_grid(const mesh::Mesh& mesh, const MeshGridLimits& limits);

// The outermost level at which the column differs from the one before it.
std::size_t level_of_change(const MeshGrid& grid, std::size_t column);

// "16,384".
std::string with_commas(std::int64_t count);

// A kind of process group: the number and size of its groups, and the first groups as lists of ranks.
struct GroupFacts {
  mesh::Group kind = mesh::Group::World;
  std::int64_t size = 1, groups = 1;
  std::int64_t most_nodes = 1;  // largest number of nodes that a group spans
  std::string first;            // "0-7", "0 8 16 24 | 1 9 17 25 | ..."
};

// Facts about all kinds, in display order. ranks_per_node = 0: all ranks are on one node.
std::vector<GroupFacts> group_facts(const mesh::Mesh& mesh, std::int64_t ranks_per_node);

// What the ranks of such a group split or share: "heads and ffn columns of a layer".
std::string_view meaning_of(mesh::Group group);

}  // namespace penstock::report
