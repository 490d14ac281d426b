// SPDX-License-Identifier: Apache-2.0
// Counts of the parameters that a rank holds, padding included; by default, for its stages on the first rank
// of the mesh. Each of its logical shards (run/tensor.h) has its own copy of the tensors that are not cut.
#pragma once

#include <cstdint>
#include <vector>

#include "run/run.h"

namespace penstock::run {

// In elements. If a rank has both sides of a tied embedding, the output side adds a gradient but no weight.
struct HeldParameters {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t states = 0;         // weights whose masters and moments the rank has
  std::int64_t own_gradients = 0;  // the rank's shares of the gradients
  std::int64_t longest = 0;        // longest share of one tensor

  HeldParameters& operator+=(const HeldParameters& other);
};

// The rank's rows of one vocabulary matrix.
HeldParameters matrix_held(const Run& run);

// Layers, and on the end stages embedding, final norm and output matrix if the stage has them.
HeldParameters held_by_stage(const Run& run, int stage);

// Each device's rows of embedding and output matrix under vocabulary parallelism.
HeldParameters vocabulary_held(const Run& run);

// The stages, and the vocabulary if it is sharded, on the rank that holds the most of their states.
struct DeviceParameters {
  HeldParameters all, vocabulary;
  std::int64_t own_masters = 0;  // states of weights that are their own masters
};
DeviceParameters held_by_device(const Run& run, const std::vector<int>& stages);

}  // namespace penstock::run
