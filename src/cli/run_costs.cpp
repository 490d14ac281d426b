// SPDX-License-Identifier: Apache-2.0
#include "cli/run_costs.h"

#include "nn/kernel_setting.h"
#include "schedule/placement.h"

namespace penstock::cli {
namespace {

sim::ModelCostsOptions options_of(const ResolvedRun& run, const AssumedSpeeds& speeds) {
  sim::ModelCostsOptions options{.shape = run.options.model.shape,
                                 .layers = run.layers,
                                 .sequences = run.options.train.micro_batch,
                                 .precision = model::parse_precision(run.options.train.precision),
                                 .keep = run.keep,
                                 .flops_per_second = speeds.flops_per_second,
                                 .attention_flops_per_second = speeds.attention_flops_per_second,
                                 .link = {.bytes_per_second = speeds.bytes_per_second},
                                 .copy_bytes_per_second = speeds.copy_bytes_per_second,
                                 .attention_factor = speeds.attention_factor,
                                 .loss_tile = run.options.train.loss_tile_tokens};
  if (run.options.schedule.vocabulary_parallel)
    options.vocabulary_shards = static_cast<int>(run.options.parallel.pp);
  options.kernels = nn::kernel_setting(options.precision, run.threads);
  const schedule::Placement placement(run.schedule);
  for (int stage = 0; stage < run.schedule.stages; ++stage) {
    options.devices.push_back(placement.device_of(stage, 0));
  }
  for (const int slices : run.schedule.slices) {
    options.slices.push_back(cut(run, slices));
  }
  return options;
}

}  // namespace

RunCosts::RunCosts(const ResolvedRun& run, const AssumedSpeeds& speeds) : costs_(options_of(run, speeds)) {}

}  // namespace penstock::cli
