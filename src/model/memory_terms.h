// SPDX-License-Identifier: Apache-2.0
// The terms of which a device's memory is made, each by its formula (algorithms: "Saved activations and
// recomputation", "Pipeline-parallel-aware offloading"). Compositions of them: memory_device.h for our own
// runs.
//
// Bytes are doubles here, since shares of a matrix need not be whole; a total is rounded once.
#pragma once

#include "model/memory_policy.h"
#include "model/shape.h"

namespace penstock::model {

// Sizes of the mesh: tensor, context, expert, data and pipeline parallel.
struct Spread {
  int tensor = 1;
  int context = 1;
  int expert = 1;
  int data = 1;
  int pipeline = 1;
  friend bool operator==(const Spread&, const Spread&) = default;
};

// Parameters on one device. Experts are counted apart: their optimizer states have fewer replicas to spread
// over.
struct LocalParameters {
  double dense = 0;
  double expert = 0;
  double total() const { return dense + expert; }
};

// Of `layers` layers and `embeddings` matrices of V·h, shared by t (experts by t·e). Norms are held whole.
LocalParameters local_parameters(const Shape& shape, const Spread& spread, double layers, double embeddings,
                                 bool norms = true);

double weight_bytes(const LocalParameters& parameters, Precision precision);
double gradient_bytes(const LocalParameters& parameters, Precision precision);

// Sharded over d·c (ZeRO-1), experts over their own replicas d·c/e: master and two moments, or the moments
// alone where the weights are their own masters.
double optimizer_bytes(const LocalParameters& parameters, const Spread& spread, Precision precision);

// Records in flight that left for the host: all but four, the one being computed, the one being stored and
// the two being loaded. Bytes of a record that stay and that leave: M = N·u − α·(N − 4)·leaving.
double offloaded_records(double in_flight);

// Accumulators of K,V gradients at their peak, in slice-chunks: v(n − g) + g; 0 for whole sequences.
double kv_gradient_slices(int slices, int chunks, int group);

// The smallest divisor of n that is at least p: slices per group of interleaved slimpipe; n when v = 1 or n <
// p.
int slice_group(int slices, int devices, int chunks);

}  // namespace penstock::model
