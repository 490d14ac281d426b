// SPDX-License-Identifier: Apache-2.0
// A run with a row for each rank, where several ranks of a mesh carry out the ops of one pipeline device.
#pragma once

#include <string>
#include <vector>

#include "mesh/mesh.h"
#include "report/report.h"

namespace penstock::report {

// The ops of every rank, in the order of the ranks: those of its pipeline device, sent to and received from
// the ranks of its own pipeline. `program` has mesh.pipeline devices; its context exchange is left out.
schedule::Program program_of_ranks(const schedule::Program& program, const mesh::Mesh& mesh);

// Rows named by rank and coordinates, with the groups of every axis that has several ranks but not all;
// `steps` have a row for each rank.
Run run_of_ranks(std::string name, const schedule::Program& program, const mesh::Mesh& mesh,
                 std::vector<Track> steps);

}  // namespace penstock::report
