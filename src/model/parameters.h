// SPDX-License-Identifier: Apache-2.0
// The parameters of a model: names and sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/shape.h"

namespace penstock::model {

struct ParameterShape {
  std::string name;                 // Hugging Face's
  std::vector<std::int64_t> sizes;  // matrices are [out, in]
};

// All parameters in model order (parameter_names); a tied embedding appears once.
std::vector<ParameterShape> parameter_shapes(const Shape& shape);
std::vector<ParameterShape> layer_parameter_shapes(const Shape& shape, std::int64_t layer);

}  // namespace penstock::model
