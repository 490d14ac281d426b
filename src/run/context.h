// SPDX-License-Identifier: Apache-2.0
// Context parallelism (docs/mesh.md, "Context ranks"): how the ranks of a context group form the attention of
// a slice together.
#pragma once

#include <string>
#include <vector>

#include "model/memory/layer_shards.h"
#include "run/options.h"
#include "run/run.h"

namespace penstock::run {

// How the ranks do it, of settled options.
model::ContextSplit context_split(const Options& options);

// What a rank has of the keys and values that later slices read: its heads, and the cuts of its tokens.
model::Shape cached_shape(const Run& run);
std::vector<model::TokenRange> cached_slices(const Run& run, int micro_batch);

// Whether a rank's keys of a slice are two runs of the sequence, of which documents may see one alone: nobody
// attends to these for another device.
bool keys_in_two_runs(const Options& options);

// The modes that "auto" may become, those that keep least and are most often fastest first. All ranks share
// out the heads if they can, else as many as can; with context exchange no mode keeps whole keys, and of
// documents none cuts keys in two runs (keys_in_two_runs) where there is another.
std::vector<std::string> context_modes(const Options& options);

// What a rank receives with that mode for a layer of the longest slice, forward and backward.
Bytes context_bytes(const Run& run, const std::string& mode);

// Checks parallel.cp_mode, makes "auto" the first of context_modes() until the run is laid out, and raises
// schedule.slice_unit to a multiple of the 2c pieces of a slice. Throws InputError for what has no legal
// split, naming the nearest values that have. Needs a settled model and numerics.tensor.
void settle_context(Options& options);

}  // namespace penstock::run
