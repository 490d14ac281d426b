// SPDX-License-Identifier: Apache-2.0
// The parts of a page's data that grow with the number of ops: programs, timelines, memory.
// assets/decode.js reads them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/report.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::report {

// {"sizes":[..],"devices":["base64",..]}; sizes are the distinct byte counts. The columns of a device, in
// order: count; kind; stage, micro-batch and slice (each by Columns::add_differences); peer + 1; index of its
// bytes in sizes; number of waits; for each wait the distance back to the op waited for.
std::string program_json(const schedule::Program& program);

// ["base64",..], one per device: for each op, in issue order, its start (as difference from the end of the op
// before on its lane) and its duration, in ticks.
std::string events_json(const schedule::Program& program, const schedule::Timeline& timeline, Seconds tick);

// ["base64",..], one per device: for each of `slots` equal parts of the makespan and each kind of
// compute_kinds() one byte, the fraction of that time that the kind takes, in 1/255.
std::string shares_json(const schedule::Program& program, const schedule::Timeline& timeline,
                        std::size_t slots);

// The kinds of ops that run on the compute lane.
std::vector<schedule::OpKind> compute_kinds();

// {"categories":[..],"unit":bytes,"data":"base64"}: count; times in ticks; then each category's values in
// units (differences). Of more than `points` entries, keeps the maximum total and the last of each equal part
// of the time.
std::string memory_json(const MemorySeries& memory, Seconds tick, std::size_t points);

}  // namespace penstock::report
