// SPDX-License-Identifier: Apache-2.0
// Memory of one device of a pipeline in our own runs, by category. Plain arithmetic without allocation, so
// that a search can ask for millions of candidates.
#pragma once

#include "model/memory_table.h"
#include "model/memory_terms.h"

namespace penstock::model {

// What all devices of a run have in common.
struct MemoryPlan {
  Shape shape;
  Precision precision = Precision::BF16;
  Spread spread;
  Tokens seq_len = 0;
  int micro_batch = 1;  // sequences
  int slices = 1;       // n
  int chunks = 1;       // v
  KeepSet keep;
  double offload = 0;  // α
  bool vocabulary_parallel = false;
  Tokens loss_tile = 512;  // tokens whose logits are alive at once
};

// What one device has of it. Counts are in slice-chunks: the records of one (stage, micro-batch, slice).
struct DeviceLoad {
  double layers = 0;          // on the device
  double embeddings = 0;      // matrices of V·h: 1 each for the input and the output layer
  bool last = false;          // computes the loss
  double records = 0;         // in flight at most
  double weight_records = 0;  // between I and W at most
  double kv_gradients = 0;    // with accumulators at most
  double queued = 0;          // hidden states waiting to be used
};

DeviceMemory device_memory(const MemoryPlan& plan, const DeviceLoad& load);

// Tokens of one slice on one device, b·s/(n·t·c), and the bytes of one slice-chunk's record: those that may
// leave for the host, and those that stay in any case (statistics; K,V when there are slices).
double slice_tokens(const MemoryPlan& plan);
struct RecordSize {
  double leaving = 0;
  double staying = 0;
  double total() const { return leaving + staying; }
};
RecordSize record_size(const MemoryPlan& plan, double layers_per_chunk);

}  // namespace penstock::model
