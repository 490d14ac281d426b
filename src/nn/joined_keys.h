// SPDX-License-Identifier: Apache-2.0
// Consecutive parts of earlier slices whose keys one call of attention goes over (model/joined_keys.h).
#pragma once

#include <span>
#include <vector>

#include "nn/context_attention.h"
#include "nn/earlier_part.h"

namespace penstock::nn {

using EarlierParts = std::span<const EarlierPart>;

// The parts in order, in groups of at least so many keys; 0: each by itself. The groups are views of `parts`.
std::vector<EarlierParts> joined_parts(EarlierParts parts, std::int64_t least_keys);

// Of one part views, of several one tensor each with their tokens one after the other.
KeyValues keys_and_values(EarlierParts parts);

// Adds to the gradients of each part's slice, in whose place in the tensors those of the part are. Takes over
// the tensors: do not use them afterwards.
void add_gradients(EarlierParts parts, const KeyValues& gradients);

}  // namespace penstock::nn
