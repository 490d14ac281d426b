// SPDX-License-Identifier: Apache-2.0
// Closed form of one pipeline device's memory, by category, in our own runs and, with a workload's habits, in
// those of other trainers: plain arithmetic without allocation, fast enough for searches over millions of
// candidates.
#pragma once

#include "model/memory/table.h"
#include "model/memory/terms.h"
#include "plan/layout.h"

namespace penstock::plan {

// Inputs that differ per device. Counts are in slice-chunks: the records of one (stage, micro-batch, slice).
struct DeviceLoad {
  double layers = 0;          // on the device
  double embeddings = 0;      // V·h matrices: 1 each for the input and the output layer
  double tied_gradients = 0;  // V·h gradients of an output layer that shares the embedding's weights
  bool last = false;          // computes the loss
  double records = 0;         // peak in flight
  double weight_records = 0;  // peak between I and W
  double kv_gradients = 0;    // peak with K,V gradient accumulators
  double queued = 0;          // hidden states waiting to be used
  Bytes temporary = 0;        // workspace of an action (temporary_bytes)
};

// Parameters on a device: model::held_parameters, but with two matrices per GELU MLP, and with 1/t of each
// expert if tensor ranks split experts.
model::LocalParameters parameters_on_device(const Workload& workload, const Layout& layout, double layers,
                                            double embeddings);

// Number of parameters whose optimizer states are on the device. Dense states are sharded over
// layout.sharded.group replicas, expert states over the same fraction of their own replicas.
double stepped_parameters(const Layout& layout, const model::LocalParameters& parameters);

// Peak bytes that the backward of a micro-batch's last slice allocates on top of what was alive before it, as
// the trainer predicts them for a layer in the middle of the model.
Bytes temporary_bytes(const Workload& workload, const Layout& layout);

model::MemoryPeaks device_memory(const Workload& workload, const Layout& layout, const DeviceLoad& load);

// Bytes of one slice-chunk's record: the part that can be offloaded, and the part that always stays on the
// device (statistics; K,V if there are slices).
struct RecordSize {
  double leaving = 0;
  double staying = 0;
  double total() const { return leaving + staying; }
};
RecordSize record_size(const Workload& workload, const Layout& layout, double layers_per_chunk);

}  // namespace penstock::plan
