// SPDX-License-Identifier: Apache-2.0
// The terms of a device's memory, one formula each (docs/memory.md, "Saved between F and B",
// "Offloading"). plan/device_memory.h composes them for our own runs.
//
// Bytes are doubles here, since shares of a matrix need not be whole; only totals are rounded.
#pragma once

#include "mesh/mesh.h"
#include "model/memory/policy.h"
#include "model/shape.h"

namespace penstock::model {

// Parameters on one device. Experts are counted apart, as fewer replicas share their optimizer states.
struct LocalParameters {
  double dense = 0;
  double expert = 0;
  double expert_replicas = 1;
  double total() const { return dense + expert; }
};

// Our own: for `layers` layers and `embeddings` matrices of V·h. A rank holds whole experts, E/e of them,
// which t·c·d/e ranks replicate (mesh.h); router and norms whole; of the rest 1/t, but at least one key-value
// head.
LocalParameters held_parameters(const Shape& shape, const mesh::Mesh& mesh, double layers, double embeddings);

double weight_bytes(const LocalParameters& parameters, Precision precision);
double gradient_bytes(const LocalParameters& parameters, Precision precision);

// Sharded over d·c (ZeRO-1), experts over their own replicas d·c/e: master and two moments, or only the
// moments if the weights are their own masters.
double optimizer_bytes(const LocalParameters& parameters, const mesh::Mesh& mesh, Precision precision);

// Offloaded records in flight: all but four (one being computed, one being stored, two being loaded). Bytes
// of a record that stay and that leave: M = N·u − α·(N − 4)·leaving.
inline constexpr double kRecordsAtHome = 4;
double offloaded_records(double in_flight);

// Peak of the accumulators of K,V gradients, in slice-chunks, with groups of g slices: v(n − g) + g; 0 for
// whole sequences.
double kv_gradient_slices(int slices, int chunks, int group);

}  // namespace penstock::model
