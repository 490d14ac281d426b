// SPDX-License-Identifier: Apache-2.0
// Parameters of which several shards of a tensor group hold a copy (docs/mesh.md, "Tensor ranks"): norms, and
// key heads if there are fewer than shards. Each copy's gradient comes only from its shard's tokens or query
// heads.
#pragma once

#include <vector>

#include "nn/groups/tensor_group.h"
#include "nn/parameters/parameter.h"

namespace penstock::train {

// Sets the gradient of every copy to the sum over the parameter's copies. Adds them as a tree over the
// group's shards, so the bits do not depend on the number of ranks. `parameters`: this rank's, after their
// sums over replicas. Call once per step; collective.
void sum_tensor_copies(const std::vector<nn::Parameter*>& parameters, nn::TensorGroup& group);

}  // namespace penstock::train
