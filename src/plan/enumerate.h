// SPDX-License-Identifier: Apache-2.0
// The candidate lists of a search.
#pragma once

#include "plan/search.h"

namespace penstock::plan {

// Every (t, c, e, p, d) in the space with t·c·p·d = the cluster's devices. For Penstock, only sizes that a
// run file can have.
std::vector<mesh::Mesh> all_meshes(const Workload& workload, const Cluster& cluster,
                                   const SearchSpace& space);

// Sizes to try on a mesh, unless the space lists them. v: divisors of the layers per device (rounded down and
// up if uneven), and 2. n: powers of two up to 256, and p, 2p, 4p. b: powers of two up to 8, or further up to
// kShortTokens tokens. Where n does not divide a tensor and context rank's part of a sequence, or b a
// replica's part of the batch, also the divisor with the nearest ratio to it.
inline constexpr std::int64_t kShortTokens = 16384;
std::vector<int> chunks_to_try(const Workload& workload, const mesh::Mesh& mesh, const SearchSpace& space);
std::vector<int> slices_to_try(const Workload& workload, const mesh::Mesh& mesh, const SearchSpace& space);
std::vector<int> micro_batches_to_try(const Workload& workload, const mesh::Mesh& mesh,
                                      const SearchSpace& space);

}  // namespace penstock::plan
