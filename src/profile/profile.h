// SPDX-License-Identifier: Apache-2.0
// How fast is this machine? Measures what a training step is made of, on all ranks at once.
#pragma once

#include <functional>
#include <string>

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

struct Request {
  Sizes sizes;
  model::Precision precision = model::Precision::BF16;
  Effort effort;
  std::string disk_folder;
  // One pass of the optimizer over what it is given, and the bytes counted for it: the trainer's own, which
  // this folder does not know.
  std::function<void()> optimizer;
  double optimizer_bytes = 0;
};

// Collective; the result is whole on rank 0. `say` is told what is being measured.
Measurements measure_machine(comm::Communicator& world, const Request& request,
                             const std::function<void(const std::string&)>& say);

}  // namespace penstock::profile
