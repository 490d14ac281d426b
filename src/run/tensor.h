// SPDX-License-Identifier: Apache-2.0
// Logical shards of tensor parallelism (docs/mesh.md, "Tensor ranks" and "Equal bits"): every layer and
// vocabulary matrix is cut into numerics.tensor = T parts, which are computed one by one. Rank r_t of
// parallel.tp = t has the T/t consecutive parts from r_t·T/t, so that the bits of a run depend on T, not on
// t.
#pragma once

#include "model/shape.h"
#include "run/run.h"

namespace penstock::run {

// Fills in numerics.tensor. Throws InputError for numbers that form no tree or do not fit heads, key heads or
// ffn columns, with the nearest ones that do. Needs a settled model.
void settle_tensor(Options& options);

// Throws InputError, naming parallel.tp, unless `ranks` ranks can split the model's heads and key heads, and
// each has a column of ffn.
void require_shards(const model::Shape& shape, std::int64_t ranks);

}  // namespace penstock::run
