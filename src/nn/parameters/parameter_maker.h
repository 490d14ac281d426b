// SPDX-License-Identifier: Apache-2.0
// Makes parameters with their initial values. Element i of a parameter depends only on the seed, the
// parameter's name and i, not on the mesh.
#pragma once

#include <string>
#include <vector>

#include "model/shape.h"
#include "nn/parameters/parameter.h"

namespace penstock::nn {

at::ScalarType compute_type(model::Precision precision);

inline constexpr double kInitialDeviation = 0.02;
using model::kEmbeddingName;
using model::kFinalNormName;
using model::kOutputName;

class ParameterMaker {
 public:
  ParameterMaker(model::Precision precision, std::uint64_t seed, const StateLayout& states = {});

  // All ones. `copy`: see mesh::Shard.
  Parameter norm(const std::string& name, std::int64_t size, int copy = 0) const;

  // Part of a matrix of these sizes: normal values of the given deviation, and zero padding. `values_of`: the
  // name whose initial values it takes; empty: its own.
  Parameter shard(const std::string& name, const std::vector<std::int64_t>& sizes, const mesh::Shard& shard,
                  double deviation = kInitialDeviation, const std::string& values_of = {}) const;

  // A tied output matrix on the embedding's stage: the same tensors except the gradient.
  Parameter alias(const Parameter& embedding) const;

 private:
  Parameter with_room(Parameter parameter) const;
  // Fills one range of a matrix's elements, at `values`.
  void fill(void* values, std::uint64_t key, const mesh::Range& range, double deviation) const;

  at::ScalarType weight_type_;
  at::ScalarType master_type_;
  std::uint64_t seed_;
  StateLayout states_;
};

}  // namespace penstock::nn
