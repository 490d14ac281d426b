// SPDX-License-Identifier: Apache-2.0
// Context parallelism (mesh.md §4): how the ranks of a context group form the attention of a slice together.
#pragma once

#include <string>

#include "model/memory/layer_shards.h"
#include "run/options.h"
#include "run/run.h"

namespace penstock::run {

// How the ranks do it, of settled options.
model::ContextSplit context_split(const Options& options);

// What a rank has of the keys and values that later slices read: its heads, and the cuts of its tokens.
model::Shape cached_shape(const Run& run);
std::vector<model::TokenRange> cached_slices(const Run& run, int micro_batch);

// Why "auto" is the mode that it is, with what every legal mode moves and how much it keeps. Needs the
// slices.
std::string note_of_context(const Run& run);

// Checks parallel.cp_mode, chooses it where it is "auto", and raises schedule.slice_unit to a multiple of the
// 2c pieces of a slice. Throws InputError for what has no legal split, naming the nearest values that have.
// Needs a settled model and numerics.tensor.
void settle_context(Options& options);

}  // namespace penstock::run
