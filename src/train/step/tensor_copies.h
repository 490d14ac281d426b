// SPDX-License-Identifier: Apache-2.0
// Parameters of which several shards of a tensor group hold a copy (docs/mesh.md, "Tensor ranks"): norms, and
// key heads where there are fewer than shards. Each copy's gradient comes from its shard's tokens or query
// heads alone.
#pragma once

#include <vector>

#include "nn/groups/tensor_group.h"
#include "nn/parameters/parameter.h"

namespace penstock::train {

// The sum of every such parameter's gradients over its copies, in each of them. Copies are added as a tree
// over the group's shards, so the bits do not depend on the number of ranks. `parameters`: this rank's, after
// their sums over replicas. Once a step; collective.
void sum_tensor_copies(const std::vector<nn::Parameter*>& parameters, nn::TensorGroup& group);

}  // namespace penstock::train
