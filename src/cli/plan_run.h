// SPDX-License-Identifier: Apache-2.0
// From a resolved run file to a run with nothing left open: schedule lowered, slices cut, memory predicted.
#pragma once

#include <string>

#include "cli/resolve.h"
#include "schedule/passes/lower.h"
#include "train/run_plan.h"

namespace penstock::cli {

// What the passes need to know of a run: bytes of its transfers and reductions.
schedule::Lowering lowering_of(const ResolvedRun& run);

// Throws InputError for schedules that the trainer does not run: replicated parameters (dualpipe).
train::RunPlan plan_run(const ResolvedRun& run);

// Predicted bytes of each device at its peak, category by category: what is saved, sent and taken for a while
// from a simulation of the program, the rest from the model's size. Without a program: of the run's own.
model::MemoryTable predict_memory(const ResolvedRun& run, const schedule::Program& program);
model::MemoryTable predict_memory(const ResolvedRun& run);

// What is printed before the first step: model, data, schedule, and the memory of each device.
std::string start_table(const train::RunPlan& plan, const std::string& machine, int threads);

}  // namespace penstock::cli
