// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/compute.h"

#include "base/interruption.h"

namespace penstock::schedule {
Program compute_only(const Schedule& schedule) {
  Program program{schedule.name, schedule.stages, schedule.slices, {}};
  program.devices.resize(schedule.devices.size());
  for (int device = 0; device < schedule.device_count(); ++device) {
    allow_interruption();
    program.devices[device].ops.reserve(schedule.devices[device].size());
    for (const Action& action : schedule.devices[device]) {
      if (!is_compute(action.kind)) continue;
      program.devices[device].append({.key = action.key, .kind = op_kind(action.kind)});
    }
  }
  return program;
}

}  // namespace penstock::schedule
