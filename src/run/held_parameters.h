// SPDX-License-Identifier: Apache-2.0
// How many parameters a rank holds: the shards of its stages on the first rank of the mesh, where not said
// otherwise, padding included. Each of its logical shards (run/tensor.h) has its own copy of what is not cut.
#pragma once

#include <cstdint>
#include <vector>

#include "run/run.h"

namespace penstock::run {

// In elements. The output side of a tied embedding has a gradient of its own on the owner's device, no
// weight.
struct HeldParameters {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t states = 0;         // of the weights, those whose masters and moments the rank has
  std::int64_t own_gradients = 0;  // of the gradients, the rank's shares
  std::int64_t longest = 0;        // share of one tensor

  HeldParameters& operator+=(const HeldParameters& other);
};

// One matrix of the vocabulary: the rows of it that the rank has.
HeldParameters matrix_held(const Run& run);

// Layers, and on the end stages embedding, final norm and output matrix as far as the stage has them.
HeldParameters held_by_stage(const Run& run, int stage);

// Each device's rows of embedding and output matrix under vocabulary parallelism.
HeldParameters vocabulary_held(const Run& run);

// The stages and the vocabulary, if it is sharded, of the rank that holds the most of their states.
struct DeviceParameters {
  HeldParameters all, vocabulary;
};
DeviceParameters held_by_device(const Run& run, const std::vector<int>& stages);

}  // namespace penstock::run
