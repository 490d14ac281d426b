// SPDX-License-Identifier: Apache-2.0
// Compute time of a run's last steps by kernel, as stored in the run directory.
//
// profile.json: {"kernels": [name, ...], "blocks": [name, ...], "steps": [{"step": 12, "devices": [[[kernel,
// block, start, end, flops, bytes], ...], ...]}, ...]}; kernel and block are indices into the names, times
// are seconds since the step began.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "nn/kernels/profile.h"
#include "schedule/timeline.h"

namespace penstock::train {

struct StepProfile {
  std::int64_t step = 0;
  std::vector<std::vector<nn::KernelCall>> devices;
};

// Gathers the calls of every rank on rank 0; empty on the others. Collective.
StepProfile gather_profile(std::int64_t step, const std::vector<nn::KernelCall>& mine,
                           comm::Pipeline pipeline);

std::string to_json(const std::vector<StepProfile>& steps);

// A table with a line per block and kernel, longest first: calls, milliseconds and share of the compute time
// of a step (means over the steps, summed over the devices), and the rate. The last line is compute time
// outside kernels. `compute` is the time of the compute ops of all steps and devices.
std::string profile_table(const std::vector<StepProfile>& steps, Seconds compute);

}  // namespace penstock::train
