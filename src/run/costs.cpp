// SPDX-License-Identifier: Apache-2.0
#include "run/costs.h"

namespace penstock::run {

sim::Work work_of(const Run& run) {
  return {.shape = run.shape(),
          .mesh = run.mesh,
          .layers = run.layers,
          .devices = run.device_of_stage,
          .slices = run.slices,
          .sequences = run.sequences(),
          .precision = run.precision,
          .keep = run.keep,
          .vocabulary_parallel = run.sharded_vocabulary(),
          .loss_tile = run.options.train.loss_tile_tokens,
          .kernels = run.kernels};
}

sim::AnalyticCosts costs_of(const Run& run, const sim::Hardware& hardware,
                            const sim::AnalyticOptions& options) {
  return {work_of(run), hardware, sim::kPenstock, options};
}

}  // namespace penstock::run
