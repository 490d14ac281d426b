// SPDX-License-Identifier: Apache-2.0
// All weights of a pipeline, one after another, on its first rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "nn/parameter.h"

namespace penstock::train {

// What every rank has of tensors, by name: whole, or one part each, to be put together by rows in the order
// of the ranks. Visits the whole tensors on rank 0, in the order of `names`, one at a time. Collective.
void gather_tensors(const std::vector<std::string>& names, const std::map<std::string, at::Tensor>& mine,
                    comm::Communicator& pipeline,
                    const std::function<void(const std::string&, const at::Tensor&)>& visit);

// Visits every parameter's master weights on rank 0, in the order of `names`, wherever its stage lives; one
// parameter at a time is in flight. The tensors of local stages are the masters themselves, the others
// copies. Tied embeddings come once; shards of a matrix are put together, without their padding. Collective;
// `visit` is called on rank 0 alone. `parameters` are all of this rank.
void gather_weights(const std::vector<std::string>& names, const std::vector<nn::Parameter*>& parameters,
                    comm::Communicator& pipeline,
                    const std::function<void(const std::string&, const at::Tensor&)>& visit);

}  // namespace penstock::train
