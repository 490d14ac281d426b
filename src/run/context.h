// SPDX-License-Identifier: Apache-2.0
// Context parallelism (docs/mesh.md, "Context ranks"): how the ranks of a context group compute the attention
// of a slice together.
#pragma once

#include <string>
#include <vector>

#include "model/memory/layer_shards.h"
#include "run/options.h"
#include "run/run.h"

namespace penstock::run {

// How the ranks split the work. Options must be settled.
model::ContextSplit context_split(const Options& options);

// The keys and values that a rank caches for later slices: its heads, and its token range of each slice.
model::Shape cached_shape(const Run& run);
std::vector<model::TokenRange> cached_slices(const Run& run, int micro_batch);

// Whether a rank's keys of a slice are two ranges of the sequence. A document may see only one of them, so no
// other device computes attention to these keys when documents are masked.
bool keys_in_two_ranges(const Options& options);

// The modes that "auto" may become; modes that keep less and are most often faster come first. All ranks
// split the heads if they can, else as many as can. With context exchange no mode keeps whole keys, and with
// documents too none has keys in two ranges (keys_in_two_ranges) if "heads" is possible.
std::vector<std::string> context_modes(const Options& options);

// Bytes that a rank receives with `mode` for one layer and the longest slice, forward and backward.
Bytes context_bytes(const Run& run, const std::string& mode);

// Checks parallel.cp_mode, replaces "auto" by the first of context_modes() until the run is laid out, and
// raises schedule.slice_unit to a multiple of a slice's 2c pieces. Throws InputError with the nearest legal
// values if there is no legal split. Needs a settled model and numerics.tensor.
void settle_context(Options& options);

}  // namespace penstock::run
