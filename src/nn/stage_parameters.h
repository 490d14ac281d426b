// SPDX-License-Identifier: Apache-2.0
// The parameters of a stage, made and filled.
#pragma once

#include <vector>

#include "nn/parameter.h"
#include "nn/stage.h"

namespace penstock::nn {

at::ScalarType compute_type(model::Precision precision);

// In the model's order: embedding, layers, final norm, output matrix, as far as the stage has them. Initial
// values: norms 1; matrices normal with deviation 0.02, output projections (o_proj, down_proj) divided by
// √(2·layers of the model). Element i of a parameter depends on the seed, the parameter's name and i alone; a
// tied output matrix is named lm_head.weight and has the embedding's values.
std::vector<Parameter> make_parameters(const StageOptions& options);

// The parameter of that name.
Parameter& parameter_named(std::vector<Parameter>& parameters, const std::string& name);

}  // namespace penstock::nn
