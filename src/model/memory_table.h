// SPDX-License-Identifier: Apache-2.0
// Predicted bytes of one device at its peak, by category. What the planner hands to the trainer, and what
// stands beside the measured bytes.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace penstock::model {

struct DeviceMemory {
  Bytes weights = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes activations = 0;     // records that stay on the device, K,V included
  Bytes weight_records = 0;  // with a split backward: from I to W
  Bytes kv_gradients = 0;    // accumulators of the K,V gradients of slices
  Bytes logits = 0;          // of the output layer and the loss
  Bytes transient = 0;       // lives within one action: recomputed tensors, gradients between operations
  Bytes transfers = 0;       // hidden states waiting in queues and on their way
  Bytes copies = 0;          // buffers of offloading
  Bytes host = 0;            // not on the device: offloaded records, in the host's memory
  Bytes disk = 0;            // or in a file

  // The greatest sum at one time where it is known: the categories' peaks need not come together. 0: unknown.
  Bytes at_once = 0;

  Bytes total() const {
    if (at_once > 0) return at_once;
    return weights + gradients + optimizer + activations + weight_records + kv_gradients + logits +
           transient + transfers + copies;
  }
  friend bool operator==(const DeviceMemory&, const DeviceMemory&) = default;
};

using MemoryTable = std::vector<DeviceMemory>;  // one per device of the pipeline

// The categories of total() by name, in the order above, for tables and messages.
std::array<std::pair<std::string_view, Bytes>, 10> categories(const DeviceMemory& memory);
std::pair<std::string_view, Bytes> largest_category(const DeviceMemory& memory);

}  // namespace penstock::model
