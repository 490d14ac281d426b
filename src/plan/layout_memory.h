// SPDX-License-Identifier: Apache-2.0
// Memory of a layout on every device of its pipeline, and the least share to offload so that it fits.
#pragma once

#include "model/memory_device.h"
#include "plan/layout.h"

namespace penstock::plan {

model::MemoryPlan memory_plan(const Workload& workload, const Layout& layout);
model::DeviceLoad device_load(const Workload& workload, const Layout& layout, int rank);

// Of all devices, first to last.
model::MemoryTable layout_memory(const Workload& workload, const Layout& layout);

struct FittedMemory {
  model::DeviceMemory fullest;
  int rank = 0;        // of the fullest device
  double offload = 0;  // α, a multiple of 1 %
  bool fits = false;
  Bytes host_total = 0;  // of one replica's pipeline, all devices
};

// With layout.offload as it is where `fixed`, else with the least α that fits in `limit`; α = 1 where none
// does. The fullest device is the first or the last: in-flight records fall along the pipeline, and only the
// ends hold embeddings.
FittedMemory fit_memory(const Workload& workload, const Layout& layout, double limit, bool fixed);

}  // namespace penstock::plan
