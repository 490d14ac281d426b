// SPDX-License-Identifier: Apache-2.0
// The candidate lists of a search.
#pragma once

#include "plan/search.h"

namespace penstock::plan {

// Every (t, c, e, p, d) that the space allows with t·c·p·d devices; for Penstock, of those that a run file
// can have.
std::vector<mesh::Mesh> all_meshes(const Workload& workload, const Cluster& cluster,
                                   const SearchSpace& space);

// Candidate sizes on a mesh where the space leaves them open: v divides the layers per device, rounded down
// or up where devices have different numbers, or is 2; n is a power of two or a multiple of p; b is a power
// of two.
std::vector<int> chunks_to_try(const Workload& workload, const mesh::Mesh& mesh, const SearchSpace& space);
std::vector<int> slices_to_try(const mesh::Mesh& mesh, const SearchSpace& space);
std::vector<int> micro_batches_to_try(const SearchSpace& space);

}  // namespace penstock::plan
