// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/beyond.h"

#include "plan/trainer_choices.h"

namespace penstock::plan {
void apply(const Beyond& beyond, sim::Engine& engine) {
  if (beyond.compiled) engine.fuse_elementwise();
  if (beyond.looped_experts) engine.grouped_experts = false;
}

void apply(const Beyond& beyond, const Workload& workload, Layout& layout) {
  layout.ends = beyond.ends;
  if (beyond.copies > 1) layout.sharded.group = layout.mesh.replicas() / beyond.copies;
  layout.whole_hidden = beyond.whole_hidden;
  if (beyond.whole_states) layout.sharded.group = 1;
  if (beyond.regathers) layout.sharded.asked = *beyond.regathers;
  if (beyond.recomputed == Recomputed::EverySo) recompute_every(beyond.every, workload, layout);
  if (beyond.recomputed == Recomputed::Scores) layout.recompute_scores = true;
  if (beyond.recomputed == Recomputed::FirstOfStage) recompute_first(beyond.every, workload, layout);
  if (beyond.recomputed == Recomputed::EverySecondOp) recompute_every_second_product(workload, layout);
}

}  // namespace penstock::plan
