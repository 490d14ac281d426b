// SPDX-License-Identifier: Apache-2.0
#include "cli/run_costs.h"

namespace penstock::cli {
namespace {

sim::ModelCostsOptions options_of(const ResolvedRun& run, const AssumedSpeeds& speeds) {
  sim::ModelCostsOptions options{.shape = run.options.model.shape,
                                 .layers = run.layers,
                                 .sequences = run.options.train.micro_batch,
                                 .precision = model::parse_precision(run.options.train.precision),
                                 .flops_per_second = speeds.flops_per_second,
                                 .attention_flops_per_second = speeds.attention_flops_per_second,
                                 .link = {.bytes_per_second = speeds.bytes_per_second},
                                 .copy_bytes_per_second = speeds.copy_bytes_per_second,
                                 .attention_factor = speeds.attention_factor};
  for (const int slices : run.schedule.slices) {
    options.slices.push_back(model::cut_into_slices(run.options.data.seq_len, slices));
  }
  return options;
}

}  // namespace

RunCosts::RunCosts(const ResolvedRun& run, const AssumedSpeeds& speeds) : costs_(options_of(run, speeds)) {}

}  // namespace penstock::cli
