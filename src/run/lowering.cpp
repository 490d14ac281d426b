// SPDX-License-Identifier: Apache-2.0
#include "run/lowering.h"

#include <memory>

#include "model/memory/offload_choice.h"
#include "run/costs.h"
#include "run/exchange.h"
#include "run/held_parameters.h"
#include "schedule/forward_only.h"

namespace penstock::run {

schedule::Lowering lowering_of(const Run& run, const Cuts& slices) {
  const Bytes element = model::element_size(run.precision),
              accumulator = model::accumulator_size(run.precision);
  const std::int64_t shards = std::int64_t{run.mesh.tensor} * run.mesh.context;
  const Bytes width = run.sequences() * run.shape().hidden;
  const auto hidden = [&slices, width, shards](int micro_batch, int slice) {
    return slices[micro_batch][slice].length * width / shards;
  };
  schedule::Lowering lowering;
  lowering.transfer_bytes = [=](int j, int i) { return hidden(j, i) * element; };
  lowering.vocabulary = {
      .parallel = run.sharded_vocabulary(),
      .visit_bytes = [=](int j, int i) { return hidden(j, i) * (element + accumulator); },
      .part_bytes = [=, devices = run.devices()](int j, int i) { return hidden(j, i) * element / devices; }};
  if (run.offload > 0) {
    const auto records = std::make_shared<sim::RunBytes>(work_of(run));
    lowering.offload_bytes = [records, share = run.offload](const schedule::Key& key) {
      return model::leaving_bytes(records->leavable(key), share);
    };
  }
  lowering.exchange = exchange_of(run);
  lowering.gradients = {.tied_embeddings = run.shape().tied_embeddings,
                        .tied_bytes = run.shape().vocab * run.shape().hidden * accumulator / run.mesh.tensor};
  if (run.mesh.replicas() > 1) {  // states sharded over the replicas: gradients out, weights back
    const auto bytes = [&run](Bytes size) {
      return [&run, size](int stage) { return size * held_by_stage(run, stage).weights; };
    };
    lowering.replicas = {
        .sharded = true, .gradient_bytes = bytes(accumulator), .weight_bytes = bytes(element)};
  }
  return lowering;
}

schedule::Program program_of(const Run& run) {
  return schedule::lower(run.schedule, lowering_of(run, run.slices));
}

schedule::Program evaluation_of(const Run& run) {
  const bool sharded = run.sharded_vocabulary();
  const schedule::Schedule forwards =
      sharded ? schedule::forwards_of(run.schedule)
              : schedule::forward_only(run.schedule, run.schedule.micro_batches());
  const Cuts slices = cuts_of(run.options, forwards.slices);
  schedule::Lowering lowering = lowering_of(run, slices);
  lowering.gradients = {};
  lowering.replicas = {};
  lowering.offload_bytes = {};
  lowering.exchange = {};
  lowering.optimizer_step = false;
  const schedule::Program program = schedule::lower(forwards, lowering);
  return sharded ? program : schedule::with_back_pressure(program);
}

}  // namespace penstock::run
