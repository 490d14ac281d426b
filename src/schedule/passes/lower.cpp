// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/lower.h"

#include "schedule/passes/compute.h"
#include "schedule/passes/optimizer.h"

namespace penstock::schedule {

Program lower(const Schedule& schedule, const Lowering& options) {
  Program program = compute_only(schedule);
  program = add_vocabulary(program, options.vocabulary);
  program = add_offload(program, options.offload_bytes);
  program = add_transfers(program, options.transfer_bytes, options.receive_lead);
  if (!options.vocabulary.parallel) program = add_gradient_sync(std::move(program), options.gradients);
  if (options.optimizer_step) program = add_optimizer_step(std::move(program));
  return program;
}

}  // namespace penstock::schedule
