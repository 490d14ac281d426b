// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "nn/groups/documents.h"

namespace penstock::nn {

// Position of a slice: b sequences, T tokens of each, from a start position. In a context group each rank has
// two runs of T/2 tokens (context_group.h), one after the other in its tensors.
struct SlicePlace {
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;  // on this rank
  std::int64_t first_position = 0;
  std::int64_t second_position = -1;  // of the second run; -1: the tokens are one run
  Documents documents;                // of the sequences

  std::int64_t rows() const { return sequences * tokens; }  // N
  bool in_two_runs() const { return second_position >= 0; }
};

}  // namespace penstock::nn
