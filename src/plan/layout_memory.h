// SPDX-License-Identifier: Apache-2.0
// Memory of a layout on every device of its pipeline, and the least offload share that makes it fit.
#pragma once

#include "model/memory/table.h"
#include "plan/device_memory.h"

namespace penstock::plan {

// With temporary_bytes(workload, layout), which a search computes once for many layouts.
DeviceLoad device_load(const Workload& workload, const Layout& layout, int rank, Bytes temporary);

// Of all devices, in order.
model::MemoryTable layout_memory(const Workload& workload, const Layout& layout);

struct FittedMemory {
  model::DeviceMemory fullest;
  int rank = 0;        // of the fullest device
  double offload = 0;  // α, a multiple of 1 %
  bool fits = false;
  Bytes host = 0;  // the most that a device has on its host
};

// Uses layout.offload if `fixed`, else the least α that fits in `limit`; α = 1 if none does. The fullest
// device is the first or the last: in-flight records decrease along the pipeline, and only the ends hold
// embeddings. Where layout.ends splits the layers, any.
FittedMemory fit_memory(const Workload& workload, const Layout& layout, double limit, bool fixed);
FittedMemory fit_memory(const Workload& workload, const Layout& layout, double limit, bool fixed,
                        Bytes temporary);

}  // namespace penstock::plan
