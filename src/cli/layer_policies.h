// SPDX-License-Identifier: Apache-2.0
// What each layer of a run keeps for the backward: memory.policy or memory.keep for all, memory.stages over
// that, memory.layers over both.
#pragma once

#include <vector>

#include "model/memory_policy.h"
#include "schedule/options.h"

namespace penstock::cli {

// An entry of memory.stages and memory.layers is "first-last: policy" or "number: policy", counted from 0;
// a later entry wins. With slices every layer keeps kv too: they are the cache. Throws InputError naming the
// key, the entry and what would be right. policy = "auto" stands for `automatic`.
std::vector<model::KeepSet> layer_policies(const schedule::MemoryOptions& options,
                                           const std::vector<model::LayerRange>& stages, bool sliced,
                                           model::Policy automatic = model::Policy::None);

}  // namespace penstock::cli
