// SPDX-License-Identifier: Apache-2.0
// Memory and bubble of a configuration, as computed by the planner of the SlimPipe artifact
// (Cuiym715/Megatron-LM, SC'25). The same terms as our own memory model, under the original's conventions;
// used only to score against its published tables.
#pragma once

#include <string>
#include <string_view>

#include "model/memory/policy.h"
#include "model/memory/terms.h"

namespace penstock::plan {

// Differences between the files of the artifact.
struct PlannerConventions {
  bool input_in_recomputed = true;      // the recomputed part includes the layer's input, 2h bytes per token
  bool embedding_over_pipeline = true;  // under slimpipe the embedding is sharded over the pipeline

  std::string text() const;
};
PlannerConventions conventions_of(std::string_view source_file);

struct PlannerCase {
  model::Shape shape;
  mesh::Mesh mesh;
  Tokens seq_len = 0;
  int micro_batches = 1;
  int slices = 1;
  int chunks = 1;
  bool slimpipe = false;  // else (interleaved) 1F1B
  model::Policy policy = model::Policy::None;
  double offload = 0;
};

// Bytes on the fullest device; the bubble is a percentage of the step.
struct PlannerParts {
  double host = 0, weights_gradients = 0, optimizer = 0, activation = 0, logits = 0, recomputed = 0,
         kv_cache = 0, kv_gradient = 0;
  double bubble_percent = 0;

  double peak() const {
    return weights_gradients + optimizer + activation + logits + recomputed + kv_cache + kv_gradient;
  }
};

PlannerParts planner_parts(const PlannerCase& planner_case, const PlannerConventions& conventions);

}  // namespace penstock::plan
