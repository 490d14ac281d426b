// SPDX-License-Identifier: Apache-2.0
// Measures the speed of this machine in the operations of a training step, on all ranks at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profile/disk.h"
#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

using MakeWork = std::function<std::function<void()>()>;

struct Request {
  Sizes sizes;
  model::Precision precision = model::Precision::BF16;
  bool other_precision = true;  // also products in the other of bf16 and f32
  Effort effort;
  std::vector<std::string> hosts;  // host name of each rank
  std::string disk_folder;
  OpenUnnamed open_unnamed;  // opens the file for the disk measurement
  // Make one optimizer pass over its parameters, and forwards and backwards of a few layers. Their tensors
  // live only while they are measured. The caller passes them in, since this folder cannot include the
  // trainer.
  MakeWork optimizer, layers;
  double optimizer_bytes = 0;  // of a pass
  std::string optimizer_work;  // its parameters, in words
};

// Collective; the result is complete on rank 0. `say` receives the name of each measurement.
Measurements measure_machine(comm::Communicator& world, const Request& request,
                             const std::function<void(const std::string&)>& say);

}  // namespace penstock::profile
