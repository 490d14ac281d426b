// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/optimizer.h"

namespace penstock::schedule {

Program add_optimizer_step(Program program) {
  for (DeviceProgram& device : program.devices) device.append({.kind = OpKind::OptimizerStep});
  return program;
}

}  // namespace penstock::schedule
