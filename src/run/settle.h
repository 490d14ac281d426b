// SPDX-License-Identifier: Apache-2.0
// Validates a run file's options before any schedule exists: reads the model's shape, fills in defaults that
// depend on other options, rejects the impossible.
#pragma once

#include "mesh/mesh.h"
#include "run/options.h"

namespace penstock::run {

// Throws a one-line InputError with the option, its value and the valid ones: heads that do not divide
// hidden, a batch that micro_batch does not divide, a mesh that heads or experts do not fit. Accepts what can
// only be simulated and planned: `train` rejects it (train/trainable.h).
void settle(Options& options);

// Its refusals alone, before what takes long, such as measuring the machine; none where slices or chunks are
// still to be chosen.
void require_possible(Options options);

// The shape that a run file's keys give, with the defaults that depend on others: key heads, the width of
// experts, the byte tokenizer's vocabulary.
model::Shape shape_of(const ModelOptions& options);

mesh::Mesh mesh_of(const Options& options);

}  // namespace penstock::run
