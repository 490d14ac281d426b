// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/compute.h"

#include "base/error.h"

namespace penstock::schedule {
namespace {

OpKind op_kind(Kind kind) {
  switch (kind) {
    case Kind::Forward:
      return OpKind::Forward;
    case Kind::Backward:
      return OpKind::Backward;
    case Kind::BackwardInput:
      return OpKind::BackwardInput;
    case Kind::BackwardWeight:
      return OpKind::BackwardWeight;
    default:
      broken_invariant("is_compute(kind)", "only compute actions become ops", __FILE__, __LINE__);
  }
}

}  // namespace

Program compute_only(const Schedule& schedule) {
  Program program{schedule.name, schedule.stages, schedule.slices, {}};
  program.devices.resize(schedule.devices.size());
  for (int device = 0; device < schedule.device_count(); ++device) {
    program.devices[device].ops.reserve(schedule.devices[device].size());
    for (const Action& action : schedule.devices[device]) {
      if (!is_compute(action.kind)) continue;
      program.devices[device].append({.kind = op_kind(action.kind),
                                      .slice = action.slice,
                                      .stage = action.stage,
                                      .micro_batch = action.micro_batch});
    }
  }
  return program;
}

}  // namespace penstock::schedule
