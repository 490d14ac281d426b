// SPDX-License-Identifier: Apache-2.0
// Makes parameters with their initial values. Element i of a parameter depends on the seed, the parameter's
// name and i alone, wherever the parameter lives.
#pragma once

#include <string>

#include "model/shape.h"
#include "nn/parameter.h"

namespace penstock::nn {

at::ScalarType compute_type(model::Precision precision);

inline constexpr double kInitialDeviation = 0.02;
inline constexpr const char* kEmbeddingName = "model.embed_tokens.weight";
inline constexpr const char* kFinalNormName = "model.norm.weight";
inline constexpr const char* kOutputName = "lm_head.weight";

class ParameterMaker {
 public:
  ParameterMaker(model::Precision precision, std::uint64_t seed);

  // All ones.
  Parameter norm(const std::string& name, std::int64_t size) const;

  // Normal values of this deviation. `values_of` is the name whose initial values it takes; empty: its own.
  Parameter matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                   double deviation = kInitialDeviation, const std::string& values_of = {}) const;

  // Rows [first, first + own) of the whole matrix, then zeros up to `rows`.
  Parameter shard(const std::string& name, std::int64_t first, std::int64_t own, std::int64_t rows,
                  std::int64_t columns) const;

  // A tied output matrix beside its owner: the owner's values, a gradient of its own.
  Parameter alias(const Parameter& owner) const;

 private:
  Parameter finished(Parameter parameter) const;
  void fill(at::Tensor& values, const std::string& name, std::int64_t first_element, std::int64_t count,
            double deviation) const;

  at::ScalarType weight_type_;
  at::ScalarType master_type_;
  std::uint64_t seed_;
};

}  // namespace penstock::nn
