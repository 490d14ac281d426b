// SPDX-License-Identifier: Apache-2.0
// Memory of one pipeline device in our own runs, by category. Plain arithmetic without allocation, fast
// enough for searches over millions of candidates.
#pragma once

#include "model/memory/table.h"
#include "model/memory/terms.h"

namespace penstock::model {

// Common to all devices of a run.
struct MemoryPlan {
  Shape shape;
  Precision precision = Precision::BF16;
  mesh::Mesh mesh;
  Tokens seq_len = 0;
  int micro_batch = 1;  // sequences
  int slices = 1;       // n
  int chunks = 1;       // v
  KeepSet keep;
  double offload = 0;  // α
  bool vocabulary_parallel = false;
  Tokens loss_tile = 512;  // tokens whose logits are alive at once
};

// Specific to one device. Counts are in slice-chunks: the records of one (stage, micro-batch, slice).
struct DeviceLoad {
  double layers = 0;          // on the device
  double embeddings = 0;      // V·h matrices: 1 each for the input and the output layer
  bool last = false;          // computes the loss
  double records = 0;         // peak in flight
  double weight_records = 0;  // peak between I and W
  double kv_gradients = 0;    // peak with accumulators
  double queued = 0;          // hidden states waiting to be used
};

DeviceMemory device_memory(const MemoryPlan& plan, const DeviceLoad& load);

// Tokens of one slice on one device, b·s/(n·t·c), and the bytes of one slice-chunk's record: those that can
// be offloaded, and those that always stay (statistics; K,V when there are slices).
double slice_tokens(const MemoryPlan& plan);
struct RecordSize {
  double leaving = 0;
  double staying = 0;
  double total() const { return leaving + staying; }
};
RecordSize record_size(const MemoryPlan& plan, double layers_per_chunk);

}  // namespace penstock::model
