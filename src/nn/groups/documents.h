// SPDX-License-Identifier: Apache-2.0
// Documents that share a sequence (docs/data.md, "Masks"): attention stays within each document.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "model/documents.h"
#include "nn/kernels/attention.h"

namespace penstock::nn {

// Tokens of a sequence: [first, first + count).
struct TokenRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// The documents in the sequences of one micro-batch.
struct Documents {
  // [b, s] int64, contiguous: for each token the position where its document begins. Undefined: every
  // sequence is one document.
  at::Tensor starts;
  at::Tensor device_starts;       // the same in the compute device's memory; may be undefined
  bool restart_positions = true;  // rotary positions restart in each document

  bool defined() const { return starts.defined(); }

  // Returns which of the keys the queries see; nullopt if no query sees any.
  std::optional<kernels::Visible> visible(kernels::Mask mask, const TokenRun& queries,
                                          const TokenRun& keys) const;
};

// Returns the lengths of each sequence's documents, in order, from `starts` as above.
model::Documents lengths_of(const at::Tensor& starts);

}  // namespace penstock::nn
