// SPDX-License-Identifier: Apache-2.0
// Seconds of one layer and of the model's two ends for one slice, term by term. The planner's closed form and
// the event simulation share them.
#pragma once

#include <algorithm>

#include "mesh/mesh.h"
#include "model/memory/layer_shards.h"
#include "model/memory/policy.h"
#include "sim/costs/engine.h"
#include "sim/costs/hardware.h"

namespace penstock::sim {

// The layer as all tensor ranks together hold it: each has whole key heads, copies if there are fewer heads.
inline model::Shape shape_of_ranks(model::Shape shape, int tensor) {
  shape.kv_heads = tensor * model::shape_of_rank(shape, tensor).kv_heads;
  return shape;
}

// Upper bound of the busiest expert rank's load over the mean: it gets all rows (e times the mean), but per
// token at most one row for each of its E/e experts.
inline double greatest_load(const model::Shape& shape, const mesh::Mesh& mesh) {
  return std::min(as_double(mesh.expert), as_double(shape.experts) / as_double(shape.experts_per_token));
}

// The work of one layer on one slice, on one rank of the mesh.
struct LayerSlice {
  const model::Shape& shape;
  const mesh::Mesh& mesh;
  model::ContextSplit context;  // how the mesh's c ranks split attention; its `ranks` is not read
  std::int64_t shards = 1;      // logical tensor shards of a rank
  Family family = Family::Llama;
  model::KeepSet keep;
  double tokens = 0;              // rows of a tensor group's products: b·T/c
  double own = 0;                 // T, keys of the slice itself
  double seen = 1;                // part of their causal half that documents leave
  double earlier = 0;             // number of earlier slices of the same length
  double sequence = 0;            // keys of the whole sequence, for attention with its scores in memory
  double expert_load = 1;         // rows of the busiest of e ranks over the mean; capped by greatest_load()
  bool sliced = false;            // K,V stay as the cache, whatever is kept
  bool recompute_scores = false;  // plain attention keeps no scores (Korthikanti et al.'s "selective")
};

struct LayerTerms {
  Seconds matrix = 0;       // products with weights
  Seconds attention = 0;    // softmax(QKᵀ)V
  Seconds elementwise = 0;  // norms, rotation, SwiGLU, residual sums
  Seconds tensor = 0;       // tensor-parallel collectives, the exposed part
  Seconds context = 0;      // context-parallel collectives
  Seconds expert = 0;       // all-to-all to the experts and back
  Seconds gaps = 0;         // between kernels, and waits for the host

  Seconds total() const { return matrix + attention + elementwise + tensor + context + expert + gaps; }
  LayerTerms& operator+=(const LayerTerms& other) {
    matrix += other.matrix;
    attention += other.attention;
    elementwise += other.elementwise;
    tensor += other.tensor;
    context += other.context;
    expert += other.expert;
    gaps += other.gaps;
    return *this;
  }
};

struct LayerCost {
  LayerTerms forward;
  LayerTerms backward;   // without recomputation
  LayerTerms recompute;  // recomputation under the policy
  Seconds split = 0;     // extra time of I and W together over backward and recomputation
};
LayerCost layer_cost(const LayerSlice& slice, const Hardware& hardware, const Engine& engine);

// Time of W: the weight-gradient products and the gathers of their inputs.
Seconds weight_backward(const LayerSlice& slice, const Hardware& hardware, const Engine& engine);

// Output layer and loss, forward and backward, on a rank with `columns` columns of the vocabulary: three
// products, the logits read and written in 16 and 32 bits (32 bytes per number), and three gathers or
// scatters of the hidden state or its gradient.
Seconds output_layer(const LayerSlice& slice, const Hardware& hardware, const Engine& engine, double columns);

// The embedding: rows are read and summed over t, and their gradients gathered and added. The gather counts
// only if the engine is exact, or without sequence parallelism.
Seconds embedding(const LayerSlice& slice, const Hardware& hardware, const Engine& engine);

// The exposed time of one gather or scatter of the slice's hidden state over the tensor group.
Seconds hidden_pass(const LayerSlice& slice, const Hardware& hardware, const Engine& engine);

}  // namespace penstock::sim
