// SPDX-License-Identifier: Apache-2.0
// Checks that the rows of all tables share (score_tables.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mesh/mesh.h"
#include "plan/published/score.h"

namespace penstock::plan {

// Thrown for a row with valid cells that is not scored: the model cannot express it, it cannot be true, or
// its figure is not published.
struct Unscored {
  std::string reason;
};

// Calls `one` for every row. Unscored and InputError refuse only their row; the reason of a bad row names the
// file and the row. Throws MissingColumn.
void for_each_row(const Table& table, std::vector<RefusedRow>& refused,
                  const std::function<void(std::size_t row)>& one);

// Throws InputError that names the cell: `reason` says what is wrong with it or what would be right.
[[noreturn]] void refuse_cell(const Table& table, std::size_t row, const char* column,
                              const std::string& reason);

// Throws InputError for a mesh that does not multiply to the column gpus, which a table may lack, and for an
// ep that does not divide a stage.
void check_mesh(const Table& table, std::size_t row, const mesh::Mesh& mesh);

// Reads the columns tp, cp, ep, dp and pp and checks the mesh; a missing column counts as 1.
mesh::Mesh mesh_of(const Table& table, std::size_t row);

// The column offload_ratio, from 0 to 1; an empty cell counts as 0.
double offload_ratio(const Table& table, std::size_t row);

bool ran_out_of_memory(const Table& table, std::size_t row, const char* column);

// A figure that errors are relative to: a positive number. Throws Unscored for an empty cell.
double published_figure(const Table& table, std::size_t row, const char* column);

}  // namespace penstock::plan
