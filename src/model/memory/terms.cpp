// SPDX-License-Identifier: Apache-2.0
#include "model/memory/terms.h"

#include "base/whole.h"

#include <algorithm>

namespace penstock::model {

LocalParameters held_parameters(const Shape& shape, const mesh::Mesh& mesh, double layers,
                                double embeddings) {
  const Shape part = shape_of_rank(shape, mesh.tensor);
  const auto vocab = static_cast<double>(ceil_div(shape.vocab, mesh.tensor));
  const auto whole = static_cast<double>(router_parameters(shape) + shared_expert_parameters(shape) +
                                         norm_parameters(shape));
  LocalParameters local{.expert_replicas = static_cast<double>(mesh.expert_replicas())};
  local.dense = layers * (static_cast<double>(attention_parameters(part)) + whole) +
                embeddings * vocab * static_cast<double>(shape.hidden);
  if (shape.experts > 1) {
    local.expert = layers * static_cast<double>(shape.experts / mesh.expert * expert_parameters(shape));
  } else {
    local.dense += layers * static_cast<double>(expert_parameters(part));
  }
  return local;
}

double weight_bytes(const LocalParameters& parameters, Precision precision) {
  return parameters.total() * static_cast<double>(element_size(precision));
}

double gradient_bytes(const LocalParameters& parameters, Precision precision) {
  return parameters.total() * static_cast<double>(accumulator_size(precision));
}

double optimizer_bytes(const LocalParameters& parameters, const mesh::Mesh& mesh, Precision precision) {
  const double numbers = precision == Precision::BF16 ? 3.0 : 2.0;
  const double replicas = static_cast<double>(mesh.data) * mesh.context;
  return numbers * static_cast<double>(accumulator_size(precision)) *
         (parameters.dense / replicas + parameters.expert / parameters.expert_replicas);
}

double offloaded_records(double in_flight) { return std::max(0.0, in_flight - kRecordsAtHome); }

double kv_gradient_slices(int slices, int chunks, int group) {
  if (slices == 1) return 0.0;
  return static_cast<double>(chunks) * (slices - group) + group;
}

}  // namespace penstock::model
