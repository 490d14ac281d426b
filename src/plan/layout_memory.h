// SPDX-License-Identifier: Apache-2.0
// Memory of a layout on every device of its pipeline, and the smallest offload share that makes it fit.
#pragma once

#include <optional>

#include "model/memory/table.h"
#include "plan/device_memory.h"

namespace penstock::plan {

// V·h matrices on a device; tied embeddings of a single stage are one matrix.
double embeddings_on(const Workload& workload, const Layout& layout, int rank);

// `temporary`: temporary_bytes(workload, layout), which a search computes once for many layouts.
DeviceLoad device_load(const Workload& workload, const Layout& layout, int rank, Bytes temporary);

// One row per device, in order.
model::MemoryTable layout_memory(const Workload& workload, const Layout& layout);

struct FittedMemory {
  model::MemoryPeaks fullest;
  int rank = 0;        // of the fullest device
  double offload = 0;  // α, a multiple of 1 %
  bool fits = false;
  Bytes host = 0;  // largest host bytes of a device
};

// Check the first and the last device and the one with most layers, and the last but one if the backward is
// split: in-flight records decrease along the pipeline and weight records increase, and only the ends hold
// embeddings. Check all devices if layout.ends splits the layers.
// `temporary`: temporary_bytes(), if known.
FittedMemory fit_memory(const Workload& workload, const Layout& layout, double limit,
                        std::optional<Bytes> temporary = {});
// With the smallest α that fits in `limit`, or 1 if none does; layout.offload is not read.
FittedMemory fit_with_least_offload(const Workload& workload, Layout layout, double limit,
                                    std::optional<Bytes> temporary = {});

}  // namespace penstock::plan
