// SPDX-License-Identifier: Apache-2.0
// Documents that share a sequence (docs/data.md, "Masks"): the pairs of queries and keys that they leave, and
// slices of equal work.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "model/shape.h"
#include "model/slices.h"

namespace penstock::model {

// Lengths of the documents of each sequence of a micro-batch, in order. All sequences are equally long.
using Documents = std::vector<std::vector<Tokens>>;

Tokens sequence_length(const Documents& documents);

// Pairs of these queries and these keys of the same document, keys up to the query; over all sequences.
double attended_pairs(const Documents& documents, const TokenRange& queries, const TokenRange& keys);

// The same for each range of keys, all of them before the queries.
std::vector<double> pairs_with_earlier(const Documents& documents, const TokenRange& queries,
                                       std::span<const TokenRange> keys);

// Cuts the sequences into n slices as cut_into_slices does, but of which the greatest has the least work that
// cuts at multiples of `unit` allow.
std::vector<TokenRange> cut_by_work(const Documents& documents, int n, Tokens unit, const TokenWork& work);

}  // namespace penstock::model
