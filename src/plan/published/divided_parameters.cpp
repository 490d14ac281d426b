// SPDX-License-Identifier: Apache-2.0
#include "plan/published/divided_parameters.h"

namespace penstock::plan {

model::LocalParameters divided_parameters(const model::Shape& shape, const mesh::Mesh& mesh, double layers,
                                          double embeddings, bool norms) {
  const double t = mesh.tensor;
  const auto attention =
      static_cast<double>(model::attention_parameters(shape) + model::router_parameters(shape) +
                          model::shared_expert_parameters(shape));
  const auto mlp = static_cast<double>(model::expert_parameters(shape) * shape.experts);
  const double embedding = embeddings * static_cast<double>(shape.vocab * shape.hidden);
  model::LocalParameters local{.expert_replicas =
                                   static_cast<double>(mesh.data) * mesh.context / mesh.expert};
  local.dense = (layers * attention + embedding) / t;
  if (norms) local.dense += layers * 2.0 * static_cast<double>(shape.hidden);
  (shape.experts > 1 ? local.expert : local.dense) += layers * mlp / t / mesh.expert;
  return local;
}

}  // namespace penstock::plan
