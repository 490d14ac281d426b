// SPDX-License-Identifier: Apache-2.0
// The measured timelines of a run's last steps, as stored in the run directory.
//
// timeline.json: {"steps": [{"step": 12, "devices": [[[start, end], ...], ...], "memory": [[[peak, live,
// ...], ...], ...]}, ...]}, seconds since the step began, one entry per op of the device's list in
// program.txt. Of ops that compute a third number may follow: processor seconds of the rank's thread. Memory:
// bytes per op of the device's compute lane: the peak total until it ended, then the live bytes by category
// (backend/ledger.h). Of programs with exchange: "exchange": [[[exchange, start, end, waiting, processor
// seconds],
// ...], ...], the spans of each device (schedule/timeline.h), waiting 0 or 1. All this is of the first
// pipeline. Where the mesh has more ranks: "ranks": [[[start, end], ...], ...], the ops of every rank, those
// of the first device first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/record/op_memory.h"

namespace penstock::train {

struct StepTimeline {
  std::int64_t step = 0;
  schedule::Timeline timeline;
  std::vector<std::vector<OpMemory>> memory;  // [device][op of the compute lane]; empty: not measured
  std::vector<std::vector<Seconds>> processor_seconds;  // [device][op]; 0 where there is no third number
  std::vector<std::vector<schedule::Event>> ranks;      // of every rank, where several are one device
};

std::string to_json(const std::vector<StepTimeline>& steps);

// Throws InputError that begins with `origin`: no JSON of this form, a step or a rank whose ops are not all
// there (named), times that are not finite or run backwards.
std::vector<StepTimeline> parse_timelines(std::string_view json, const schedule::Program& program,
                                          std::string_view origin);

}  // namespace penstock::train
