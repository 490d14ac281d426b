// SPDX-License-Identifier: Apache-2.0
#include "model/memory/terms.h"

#include <algorithm>

namespace penstock::model {

LocalParameters local_parameters(const Shape& shape, const mesh::Mesh& mesh, double layers, double embeddings,
                                 bool norms) {
  const double t = mesh.tensor;
  const auto attention = static_cast<double>(attention_parameters(shape) + router_parameters(shape));
  const auto mlp = static_cast<double>(expert_parameters(shape) * shape.experts);
  const double embedding = embeddings * static_cast<double>(shape.vocab * shape.hidden);
  LocalParameters local;
  local.dense = (layers * attention + embedding) / t;
  if (norms) local.dense += layers * 2.0 * static_cast<double>(shape.hidden);
  (shape.experts > 1 ? local.expert : local.dense) += layers * mlp / t / mesh.expert;
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
         (parameters.dense / replicas + parameters.expert / (replicas / mesh.expert));
}

double offloaded_records(double in_flight) { return std::max(0.0, in_flight - 4.0); }

int slice_group(int slices, int devices, int chunks) {
  if (chunks == 1 || slices < devices) return slices;
  int group = devices;
  while (slices % group != 0) ++group;
  return group;
}

double kv_gradient_slices(int slices, int chunks, int group) {
  if (slices == 1) return 0.0;
  return static_cast<double>(chunks) * (slices - group) + group;
}

}  // namespace penstock::model
