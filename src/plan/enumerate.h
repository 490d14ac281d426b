// SPDX-License-Identifier: Apache-2.0
// The lists a search walks through.
#pragma once

#include "plan/search.h"

namespace penstock::plan {

// Every (t, c, e, p, d) with t·c·p·d devices that the space allows.
std::vector<model::Spread> all_meshes(const Workload& workload, const Cluster& cluster,
                                      const SearchSpace& space);

// Sizes to try on a mesh where the space leaves them open: divisors of the layers per device for v; powers of
// two and multiples of p for n; powers of two for b.
std::vector<int> chunks_to_try(const Workload& workload, const model::Spread& spread,
                               const SearchSpace& space);
std::vector<int> slices_to_try(const model::Spread& spread, const SearchSpace& space);
std::vector<int> micro_batches_to_try(const SearchSpace& space);

}  // namespace penstock::plan
