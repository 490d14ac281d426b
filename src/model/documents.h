// SPDX-License-Identifier: Apache-2.0
// Documents packed into one sequence (docs/data.md, "Masks"): the query-key pairs that their mask leaves, and
// slices of equal work.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "model/shape.h"
#include "model/slices.h"

namespace penstock::model {

// Per sequence of a micro-batch: the lengths of its documents, in order. All sequences are equally long.
using Documents = std::vector<std::vector<Tokens>>;

Tokens sequence_length(const Documents& documents);

// Number of causal pairs of these queries and keys within a document, summed over all sequences.
double attended_pairs(const Documents& documents, const TokenRange& queries, const TokenRange& keys);

// The same for each range of `keys`, all before the queries.
std::vector<double> pairs_with_earlier(const Documents& documents, const TokenRange& queries,
                                       std::span<const TokenRange> keys);

// Cuts the sequences into n slices like cut_into_slices, but minimises the work of the largest slice; cuts
// are at multiples of `unit`.
std::vector<TokenRange> cut_by_work(const Documents& documents, int n, Tokens unit, const TokenWork& work);

}  // namespace penstock::model
