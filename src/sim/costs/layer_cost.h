// SPDX-License-Identifier: Apache-2.0
// Seconds of one layer and of the model's two ends for one slice, term by term: what the planner's closed
// form and the event simulation have in common.
#pragma once

#include <algorithm>

#include "mesh/mesh.h"
#include "model/memory/layer_shards.h"
#include "model/memory/policy.h"
#include "sim/costs/engine.h"
#include "sim/costs/hardware.h"

namespace penstock::sim {

// The layer as all tensor ranks together hold it: each has whole key heads, copies where they are fewer.
inline model::Shape shape_of_ranks(model::Shape shape, int tensor) {
  shape.kv_heads = tensor * model::shape_of_rank(shape, tensor).kv_heads;
  return shape;
}

// The most that the busiest of e expert ranks can have over the mean: all rows, or those of its E/e experts
// where a token has more different ones.
inline double greatest_load(const model::Shape& shape, const mesh::Mesh& mesh) {
  return std::min(as_double(mesh.expert), as_double(shape.experts) / as_double(shape.experts_per_token));
}

// The work of one layer on one slice, on one rank of the mesh.
struct LayerSlice {
  const model::Shape& shape;
  const mesh::Mesh& mesh;
  model::ContextSplit context;  // how the mesh's c ranks form attention; its `ranks` is not read
  Family family = Family::Llama;
  model::KeepSet keep;
  double tokens = 0;              // that a tensor group multiplies together: b·T/c
  double own = 0;                 // T, keys of the slice itself
  double seen = 1;                // of the causal half of those, where documents leave less
  double earlier = 0;             // slices before it, each as long
  double sequence = 0;            // keys of the whole sequence, for attention with its scores in memory
  double expert_load = 1;         // rows of the busiest of e ranks over their mean; counts up to the greatest
  bool sliced = false;            // K,V stay as the cache, whatever is kept
  bool recompute_scores = false;  // plain attention keeps no scores (Korthikanti et al.'s "selective")
};

struct LayerTerms {
  Seconds matrix = 0;       // products with weights
  Seconds attention = 0;    // softmax(QKᵀ)V
  Seconds elementwise = 0;  // norms, rotation, SwiGLU, residual sums
  Seconds tensor = 0;       // tensor-parallel collectives, as far as they show
  Seconds context = 0;      // context-parallel collectives
  Seconds expert = 0;       // all-to-all to the experts and back
  Seconds gaps = 0;         // between kernels, and waiting for the host

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
  LayerTerms recompute;  // what the policy forms again
  Seconds split = 0;     // what I and W take together beyond the backward and the recomputation
};
LayerCost layer_cost(const LayerSlice& slice, const Hardware& hardware, const Engine& engine);

// What W takes: the products for the weights' gradients, and what is gathered for them.
Seconds weight_backward(const LayerSlice& slice, const Hardware& hardware, const Engine& engine);

// Output layer and loss, forward and backward, where a rank has so many columns of the vocabulary: the
// product three times, the logits read and written in 16 and 32 bits (32 bytes a number), the hidden state
// gathered and its gradient scattered.
Seconds output_layer(const LayerSlice& slice, const Hardware& hardware, const Engine& engine, double columns);

// Rows of the embedding read, summed over t and added to their gradients.
Seconds embedding(const LayerSlice& slice, const Hardware& hardware, const Engine& engine);

// One gather or scatter of the slice's hidden state over the tensor group, as far as it shows.
Seconds hidden_pass(const LayerSlice& slice, const Hardware& hardware, const Engine& engine);

}  // namespace penstock::sim
