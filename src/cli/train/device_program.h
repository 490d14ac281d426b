// SPDX-License-Identifier: Apache-2.0
// What computes on cards is a program of its own, penstock-cuda.
#pragma once

#include "cli/train/resolve_run.h"

namespace penstock::cli {

// The process becomes that program, if this one computes on the processor, the run asks for a card and the
// program is beside this one; before anything is printed.
void become_program_for_cards(const RunSource& source);

}  // namespace penstock::cli
