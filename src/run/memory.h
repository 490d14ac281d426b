// SPDX-License-Identifier: Apache-2.0
// The predicted memory of a run.
#pragma once

#include "run/run.h"

namespace penstock::run {

// Predicted peak of each device of a pipeline, by category. Records, messages and temporaries come from a
// simulation of the program, the rest from the size of the model.
model::MemoryTable predict_memory(const Run& run, const schedule::Program& program);

std::size_t fullest_device(const model::MemoryTable& table);

}  // namespace penstock::run
