// SPDX-License-Identifier: Apache-2.0
// Closed form of one pipeline device's memory in our own runs, by category: plain arithmetic without
// allocation, fast enough for searches over millions of candidates.
#pragma once

#include "model/memory/table.h"
#include "model/memory/terms.h"
#include "plan/layout.h"

namespace penstock::plan {

// Specific to one device. Counts are in slice-chunks: the records of one (stage, micro-batch, slice).
struct DeviceLoad {
  double layers = 0;          // on the device
  double embeddings = 0;      // V·h matrices: 1 each for the input and the output layer
  double tied_gradients = 0;  // V·h gradients of an output layer whose weights are the embedding's
  bool last = false;          // computes the loss
  double records = 0;         // peak in flight
  double weight_records = 0;  // peak between I and W
  double kv_gradients = 0;    // peak with accumulators
  double queued = 0;          // hidden states waiting to be used
  Bytes temporary = 0;        // of an action (temporary_bytes)
};

// Parameters on a device: model::held_parameters, but of an MLP with GELU two matrices, and a t-th of each
// expert where tensor ranks cut them.
model::LocalParameters parameters_on_device(const Workload& workload, const Layout& layout, double layers,
                                            double embeddings);

// Parameters whose optimizer states the device has, where those that replicas hold too are shared out over
// layout.shared.group of them, and experts' over as many of their own replicas.
double stepped_parameters(const Layout& layout, const model::LocalParameters& parameters);

// What the backward of a micro-batch's last slice takes at most beyond what was alive before it, as the
// trainer predicts it for a layer in the middle of the model.
Bytes temporary_bytes(const Workload& workload, const Layout& layout);

model::DeviceMemory device_memory(const Workload& workload, const Layout& layout, const DeviceLoad& load);

// The bytes of one slice-chunk's record: those that can be offloaded, and those that always stay (statistics;
// K,V when there are slices).
struct RecordSize {
  double leaving = 0;
  double staying = 0;
  double total() const { return leaving + staying; }
};
RecordSize record_size(const Workload& workload, const Layout& layout, double layers_per_chunk);

}  // namespace penstock::plan
