// SPDX-License-Identifier: Apache-2.0
// Keys and values of a part of one slice, and the buffers that sum their gradients.
#pragma once

#include "backend/ledger.h"
#include "model/slice_halves.h"
#include "nn/record.h"

namespace penstock::nn {

struct KeyValues {
  at::Tensor key;    // [b, K, C, d], last stride 1
  at::Tensor value;  // the same
};

KeyValues keys_and_values(const LayerRecord& slice, const model::SlicePart& part);

// Adds the part's gradients to those of its slice, which are counted in `category`. Takes ownership of the
// tensors: do not use them afterwards.
void add_gradients(LayerRecord& slice, const model::SlicePart& part, const KeyValues& gradients,
                   model::Category category = model::Category::KvGradients);

}  // namespace penstock::nn
