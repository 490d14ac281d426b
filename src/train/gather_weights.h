// SPDX-License-Identifier: Apache-2.0
// All weights of a pipeline, one after another, on its first rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "nn/stage.h"

namespace penstock::train {

// Visits every parameter's master weights on rank 0, in the order of `names`, wherever its stage lives; one
// parameter at a time is in flight. The tensors of local stages are the masters themselves, the others
// copies. Tied embeddings come once. Collective; `visit` is called on rank 0 alone.
void gather_weights(const std::vector<std::string>& names, std::map<int, nn::Stage>& stages,
                    comm::Communicator& pipeline,
                    const std::function<void(const std::string&, const at::Tensor&)>& visit);

}  // namespace penstock::train
