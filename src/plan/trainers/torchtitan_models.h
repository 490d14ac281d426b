// SPDX-License-Identifier: Apache-2.0
// The models of torchtitan 0.2.2 (torchtitan/models/*/__init__.py), by name and flavor, as far as Penstock's
// model family covers them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/shape.h"

namespace penstock::plan {

struct TitanModel {
  std::string_view name, flavor;
  std::string_view both;  // for messages
  model::Shape shape;
  bool has_pipeline = true;  // torchtitan can cut it into stages
};

// Throws InputError for any other model, with the reason: layer features that are not predicted, or the valid
// names or flavors.
const TitanModel& find_titan_model(const std::string& name, const std::string& flavor,
                                   const std::string& origin);

// The model with these sizes; null if there is none.
const TitanModel* titan_model_of(const model::Shape& shape);

// The name of the models whose layers are most like those of the shape, and whether they are of its kind:
// with or without norms of heads, experts, a shared expert and tied embeddings, as the shape.
struct TitanKind {
  std::string_view name;
  bool same = false;
};
TitanKind titan_kind_of(const model::Shape& shape);

}  // namespace penstock::plan
