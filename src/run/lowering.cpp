// SPDX-License-Identifier: Apache-2.0
#include "run/lowering.h"

#include <memory>
#include <utility>

#include "model/memory/offload_choice.h"
#include "run/costs.h"
#include "run/exchange.h"
#include "run/held_parameters.h"
#include "run/replicas.h"
#include "schedule/forward_only.h"
#include "sim/lowering.h"

namespace penstock::run {

schedule::Lowering lowering_of(const Run& run, const Cuts& slices) {
  sim::Work work = work_of(run);
  work.slices = slices;
  const auto bytes = std::make_shared<const sim::RunBytes>(std::move(work));
  const Bytes element = element_size(run.precision), accumulator = accumulator_size(run.precision);
  schedule::Lowering lowering = sim::lowering_of(bytes);
  if (run.offload > 0) {
    lowering.offload_bytes = [bytes, share = run.offload](const schedule::Key& key) {
      return model::leaving_bytes(bytes->leavable(key), share);
    };
  }
  lowering.exchange = exchange_of(run);
  lowering.gradients = {.tied_embeddings = run.shape().tied_embeddings,
                        .tied_bytes = accumulator * matrix_held(run).own_gradients};
  if (has_replicas(run)) {  // gradients out, weights back
    const auto held = [&run](int unit) {
      return unit < run.stages() ? held_by_stage(run, unit) : vocabulary_held(run);
    };
    lowering.replicas = {.sharding = run.replica_sharding,
                         .gradient_bytes = [=](int unit) { return accumulator * held(unit).gradients; },
                         .weight_bytes = [=](int unit) { return element * held(unit).weights; }};
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
  lowering.replicas.reduces = false;
  lowering.offload_bytes = {};
  lowering.exchange = {};
  lowering.optimizer_step = false;
  const schedule::Program program = schedule::lower(forwards, lowering);
  return sharded ? program : schedule::with_back_pressure(program);
}

}  // namespace penstock::run
