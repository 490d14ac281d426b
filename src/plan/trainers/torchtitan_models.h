// SPDX-License-Identifier: Apache-2.0
// The models of torchtitan 0.2.2 (torchtitan/models/*/__init__.py), by name and flavor, as far as this
// project's family of models has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/shape.h"

namespace penstock::plan {

struct TitanModel {
  std::string_view name, flavor;
  std::string_view both;  // for people
  model::Shape shape;
  bool has_pipeline = true;  // torchtitan can cut it into stages
};

// Throws InputError for any other, with the reason: what its layers have that these predictions have not, or
// the nearest name or flavor.
const TitanModel& find_titan_model(const std::string& name, const std::string& flavor,
                                   const std::string& origin);

// The one of these sizes, if there is one.
const TitanModel* titan_model_of(const model::Shape& shape);

}  // namespace penstock::plan
