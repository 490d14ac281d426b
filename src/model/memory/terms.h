// SPDX-License-Identifier: Apache-2.0
// The terms of a device's memory, one formula each (docs/memory.md, "Saved between F and B",
// "Offloading"). plan/device_memory.h composes them for our own runs.
//
// Bytes are doubles here, since shares of a matrix may be fractional; only totals are rounded.
#pragma once

#include "mesh/mesh.h"
#include "model/memory/policy.h"
#include "model/shape.h"

namespace penstock::model {

// Parameters on one device. Experts are separate, since fewer replicas share their optimizer states.
struct LocalParameters {
  double dense = 0;
  double expert = 0;
  double expert_replicas = 1;
  double total() const { return dense + expert; }
};

// For our own runs: `layers` layers and `embeddings` matrices of V·h. A rank holds E/e whole experts, which
// t·c·d/e ranks replicate (mesh.h); router, shared expert and norms whole; 1/t of the rest, but at least one
// key-value head.
LocalParameters held_parameters(const Shape& shape, const mesh::Mesh& mesh, double layers, double embeddings);

double weight_bytes(const LocalParameters& parameters, Precision precision);
double gradient_bytes(const LocalParameters& parameters, Precision precision);

// Sharded over d·c (ZeRO-1), experts over their expert_replicas: master and two moments, or only the moments
// if the weights are their own masters.
double optimizer_bytes(const LocalParameters& parameters, const mesh::Mesh& mesh, Precision precision);

// Offloaded records in flight: all but four (one being computed, one being stored, two being loaded). The
// peak with N records of u bytes in flight is M = N·u − α·max(0, N − 4)·(bytes of a record that can leave).
inline constexpr double kRecordsAtHome = 4;
double offloaded_records(double in_flight);

// Peak of the K and V gradient accumulators, in slice-chunks, with groups of g slices: v(n − g) + g; 0 for
// whole sequences.
double kv_gradient_slices(int slices, int chunks, int group);

}  // namespace penstock::model
