// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/lower.h"

#include <utility>

#include "schedule/passes/compute.h"
#include "schedule/passes/optimizer.h"

namespace penstock::schedule {

Program lower(const Schedule& schedule, const Lowering& options) {
  Program program = compute_only(schedule);
  std::vector<Exchange> exchange = find_exchanges(program, options.exchange);
  // Skip passes that add nothing: they would copy the program, which may take gigabytes.
  if (options.vocabulary.parallel) program = add_vocabulary(program, options.vocabulary);
  if (options.offload_bytes) program = add_offload(program, options.offload_bytes);
  program = add_transfers(program, options.transfer_bytes);
  if (options.replicas.gradient_bytes) program = add_replica_sync(program, options.replicas);
  if (!options.vocabulary.parallel) program = add_gradient_sync(std::move(program), options.gradients);
  if (options.optimizer_step) program = add_optimizer_step(std::move(program));
  program.exchanges = std::move(exchange);
  return program;
}

}  // namespace penstock::schedule
