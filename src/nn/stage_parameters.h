// SPDX-License-Identifier: Apache-2.0
// Makes and initialises the parameters of a stage.
#pragma once

#include <span>
#include <vector>

#include "nn/parameters/parameter.h"
#include "nn/parameters/parameter_maker.h"
#include "nn/stage.h"

namespace penstock::nn {

// For each shard of this rank, in the model's order: its parts of the embedding, layers, final norm and
// output matrix, if the stage has them. Norms, router and this rank's experts are whole, one copy per shard.
// Initial values: norms 1; matrices normal with deviation 0.02, output projections (o_proj, down_proj, w2)
// divided by √(2·layers of the model). A tied output matrix is named lm_head.weight and has the embedding's
// values.
std::vector<std::vector<Parameter>> make_parameters(const StageOptions& options, const TensorGroup& group);

// The parameter must exist.
Parameter& parameter_named(std::span<Parameter> parameters, const std::string& name);

}  // namespace penstock::nn
