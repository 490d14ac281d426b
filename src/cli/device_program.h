// SPDX-License-Identifier: Apache-2.0
// Computation on GPUs is in a separate program, penstock-cuda.
#pragma once

#include <string>

namespace penstock::cli {

// Replaces this process by that program if this one computes on the CPU, `device` (train.device) is "cuda"
// and the program is in the same folder. Call before anything is printed. The new program computes on the
// GPU of this process's turn (backend/device.h).
void become_program_for_gpus(const std::string& device);

}  // namespace penstock::cli
