// SPDX-License-Identifier: Apache-2.0
// Predicted peak bytes of one device, by category; passed from planner to trainer, and reported next to the
// measured bytes.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/memory/category.h"

namespace penstock::model {

struct MemoryPeaks {
  Bytes weights = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes activations = 0;     // records that stay on the device, including K and V
  Bytes weight_records = 0;  // with a split backward, from I to W
  Bytes kv_gradients = 0;    // accumulators of the slices' K and V gradients
  Bytes logits = 0;          // output layer and loss
  Bytes transient = 0;       // freed within one action: recomputed tensors, gradients between operations
  Bytes transfers = 0;       // hidden states, queued or in flight, and `buffers`
  Bytes copies = 0;          // offload buffers
  Bytes host = 0;            // records offloaded to host memory; not on the device
  Bytes disk = 0;            // records offloaded to a file; not on the device

  // The part of transfers that is there for the whole step: for collectives of replicas and for exchange.
  Bytes buffers = 0;

  // Peak of the sum (the categories need not peak together). 0: unknown.
  Bytes at_once = 0;

  Bytes total() const {
    if (at_once > 0) return at_once;
    return weights + gradients + optimizer + activations + weight_records + kv_gradients + logits +
           transient + transfers + copies;
  }
  friend bool operator==(const MemoryPeaks&, const MemoryPeaks&) = default;
};

using MemoryTable = std::vector<MemoryPeaks>;  // one per device of the pipeline

// The categories of total() by name, in order, for tables and messages.
std::array<std::pair<std::string_view, Bytes>, 10> categories(const MemoryPeaks& memory);
std::pair<std::string_view, Bytes> largest_category(const MemoryPeaks& memory);

}  // namespace penstock::model
