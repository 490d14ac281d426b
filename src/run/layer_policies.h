// SPDX-License-Identifier: Apache-2.0
// The tensors each layer of a run keeps for the backward: memory.policy or memory.keep for all layers,
// overridden by memory.stages, then by memory.layers.
#pragma once

#include <vector>

#include "model/memory/policy.h"
#include "run/options.h"

namespace penstock::run {

// Entries of memory.stages and memory.layers are "first-last: policy" or "number: policy", counted from 0;
// later entries win. With slices every layer also keeps kv, as the cache. policy = "auto" counts as none
// until it is resolved (resolve/choose.h). Throws InputError with the key, the entry and the valid form.
std::vector<model::KeepSet> layer_policies(const MemoryOptions& options,
                                           const std::vector<model::LayerRange>& stages, bool sliced);

}  // namespace penstock::run
