// SPDX-License-Identifier: Apache-2.0
// Validates a run file's options before any schedule exists: reads the model's shape, fills in defaults that
// depend on other options, rejects impossible settings.
#pragma once

#include "files/model_config.h"
#include "mesh/mesh.h"
#include "run/options.h"

namespace penstock::run {

// Throws a one-line InputError with the option, its value and the valid ones: heads that do not divide
// hidden, a batch that micro_batch does not divide, a mesh that does not fit heads or experts. Accepts
// settings that can only be simulated and planned: `train` rejects them (train/trainable.h).
void settle(Options& options);

// The part of settle() that reads model.config and completes the model's keys.
void settle_model(Options& options);

// Whose tokens a run trains on: those of bytes for data.text.
enum class Tokenizer { OfModel, Bytes };
Tokenizer tokenizer_of(const DataOptions& data);

// Takes what a config.json says for other programs (options.h), except for keys that are given, and for
// tokens of another tokenizer.
void take_config_extras(ModelOptions& options, const files::ConfigExtras& extras, Tokenizer tokenizer);

// Whether the schedule is made for given costs, as greedy is; not of a file.
bool is_made_for_costs(const ScheduleOptions& chosen);

// The shape from a run file's keys, with the defaults that depend on others: key heads, the width of experts,
// the byte tokenizer's vocabulary.
model::Shape shape_of(const ModelOptions& options);

mesh::Mesh mesh_of(const Options& options);

}  // namespace penstock::run
