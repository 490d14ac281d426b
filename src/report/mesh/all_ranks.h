// SPDX-License-Identifier: Apache-2.0
// A run with one row per rank, for meshes where several ranks execute the ops of one pipeline device.
#pragma once

#include <string>
#include <vector>

#include "mesh/mesh.h"
#include "report/report.h"

namespace penstock::report {

// One device per rank, in rank order, with the ops of its pipeline device and with peers in its own pipeline.
// `program` has mesh.pipeline devices; its context exchange is left out.
schedule::Program program_of_ranks(const schedule::Program& program, const mesh::Mesh& mesh);

// Names rows by rank and coordinates, and adds the groups of every axis that has several ranks but not all.
// `steps` have one row per rank.
Run run_of_ranks(std::string name, const schedule::Program& program, const mesh::Mesh& mesh,
                 std::vector<Track> steps);

}  // namespace penstock::report
