// SPDX-License-Identifier: Apache-2.0
// Consecutive parts of earlier slices, joined into the keys of one attention call (model/joined_keys.h).
#pragma once

#include <span>
#include <vector>

#include "nn/context_attention.h"
#include "nn/earlier_part.h"

namespace penstock::nn {

using EarlierParts = std::span<const EarlierPart>;

// The parts in order, in groups of at least `least_keys` keys (the last may have fewer); 0: one part each.
// The groups are views of `parts`.
std::vector<EarlierParts> joined_parts(EarlierParts parts, std::int64_t least_keys);

// Returns views of a single part; concatenates the tokens of several.
KeyValues keys_and_values(EarlierParts parts);

// Adds the gradients, whose tokens are in the order of the parts, to those of each part's slice. Takes
// ownership of the tensors: do not use them afterwards.
void add_gradients(EarlierParts parts, const KeyValues& gradients);

}  // namespace penstock::nn
