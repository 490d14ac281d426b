// SPDX-License-Identifier: Apache-2.0
// The parameters of a stage, made and filled.
#pragma once

#include <vector>

#include "nn/parameter.h"
#include "nn/parameter_maker.h"
#include "nn/stage.h"

namespace penstock::nn {

// In the model's order: those of embedding, layers, final norm and output matrix that the stage has. Initial
// values: norms 1; matrices normal with deviation 0.02, output projections (o_proj, down_proj) divided by
// √(2·layers of the model). A tied output matrix is named lm_head.weight and has the embedding's values.
std::vector<Parameter> make_parameters(const StageOptions& options);

// The parameter of that name.
Parameter& parameter_named(std::vector<Parameter>& parameters, const std::string& name);

}  // namespace penstock::nn
