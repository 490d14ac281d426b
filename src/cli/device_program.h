// SPDX-License-Identifier: Apache-2.0
// What computes on cards is a program of its own, penstock-cuda.
#pragma once

#include <string>

namespace penstock::cli {

// The process becomes that program, if this one computes on the processor, the device (train.device) is
// "cuda" and the program is beside this one; before anything is printed. That program then computes on the
// card of this process's turn (backend/device.h).
void become_program_for_cards(const std::string& device);

}  // namespace penstock::cli
