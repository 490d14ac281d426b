// SPDX-License-Identifier: Apache-2.0
#include "run/costs.h"

#include <utility>

#include "run/context.h"
#include "run/held_parameters.h"
#include "run/replicas.h"
#include "schedule/placement.h"

namespace penstock::run {

namespace {

std::vector<sim::StageBytes> sharded_weights_of(const Run& run) {
  std::vector<sim::StageBytes> stages;
  if (!run.shards_weights()) return stages;
  for (int stage = 0; stage < run.stages(); ++stage) {
    const HeldParameters held = held_by_stage(run, stage);
    stages.push_back({held.weights * element_size(run.precision),
                      held.gradients * accumulator_size(run.precision) * gradient_buffers(run.options)});
  }
  return stages;
}

}  // namespace

sim::Work work_of(const Run& run) {
  return {.shape = run.shape(),
          .mesh = run.mesh,
          .layers = run.layers,
          .devices = run.device_of_stage,
          .held = schedule::Placement(run.schedule).replicated_stages(),
          .slices = run.slices,
          .documents = run.documents,
          .sequences = run.sequences(),
          .precision = run.precision,
          .keep = run.keep,
          .vocabulary_parallel = run.sharded_vocabulary(),
          .tensor_shards = run.tensor_shards(),
          .context = context_split(run.options),
          .loss_tile = run.options.train.loss_tile_tokens,
          .kernels = run.kernels,
          .shard_group = state_sharding_of(run, {}).shards,
          .expert_shard_group = expert_sharding_of(run, {}).shards,
          .sharded_weights = sharded_weights_of(run)};
}

sim::AnalyticCosts costs_of(const Run& run, const sim::Hardware& hardware, sim::AnalyticOptions options) {
  const bool to_disk = run.offload_to == OffloadTo::Disk && hardware.node.disk_gbps > 0;
  const std::int64_t ranks = run.mesh.world();
  if (!options.copy_rate) options.copy_rate = to_disk ? hardware.disk_rate(ranks) : hardware.copy_rate(ranks);
  return {work_of(run), hardware, sim::kPenstock, options};
}

Seconds backward_seconds(const Run& run, const std::vector<model::Documents>& documents, int device) {
  sim::Work work = work_of(run);
  work.documents = documents;
  const sim::AnalyticCosts costs(std::move(work), sim::assumed_hardware());
  const auto& ops = run.program.devices[device].ops;
  Seconds sum = 0;
  for (std::uint32_t index = 0; index < ops.size(); ++index) {
    const schedule::OpKind kind = ops[index].kind;
    if (is_backward(kind) || kind == schedule::OpKind::BackwardWeight)
      sum += costs.seconds(device, index, ops[index]);
  }
  return sum;
}

}  // namespace penstock::run
