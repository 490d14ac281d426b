// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/gradients.h"

#include "base/error.h"
#include "schedule/program_index.h"

namespace penstock::schedule {
namespace {

int only_device_of(const ProgramIndex& index, const Program& program, int stage) {
  const std::vector<int>& homes = index.devices_of(stage);
  PENSTOCK_CHECK(!homes.empty(), "every stage runs somewhere: check() the program first");
  if (homes.size() == 1) return homes.front();
  throw InputError("tied embeddings: stage " + std::to_string(stage) + " of " + program.name + " lives on " +
                   std::to_string(homes.size()) +
                   " devices; use untied embeddings or a schedule without replicas");
}

}  // namespace

Program add_gradient_sync(Program program, const GradientSync& sync) {
  if (!sync.tied_embeddings) return program;
  const ProgramIndex index(program);
  const int last_stage = program.stages - 1;
  const int first = only_device_of(index, program, 0);
  const int last = only_device_of(index, program, last_stage);
  Op reduce{.kind = OpKind::ReduceGradients, .stage = 0, .bytes = sync.tied_bytes};
  if (first != last) reduce.peer = last;
  program.devices[first].append(reduce);
  if (first == last) return program;
  reduce.stage = last_stage;
  reduce.peer = first;
  program.devices[last].append(reduce);
  return program;
}

}  // namespace penstock::schedule
