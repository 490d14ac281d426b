// SPDX-License-Identifier: Apache-2.0
// The measured timelines of a run's last steps, as stored in the run directory.
//
// timeline.json: {"steps": [{"step": 12, "devices": [[[start, end], ...], ...], "memory": [[[peak, live,
// ...], ...], ...]}, ...]}. Times are in seconds since the step began, one entry per op of the device's list
// in program.txt; compute ops may have a third number, the processor seconds of the rank's thread. "memory"
// has bytes per op of the device's compute lane: the peak total since the previous one ended, then the live
// bytes by category (model/memory/category.h). Programs with exchange add "exchange": [[[exchange, start,
// end, waiting, processor seconds], ...], ...], the spans of each device (schedule/timeline.h), waiting 0
// or 1. All this is for the first pipeline. If several ranks form one device: "ranks": [[[start, end], ...],
// ...], the ops of every rank, device by device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/memory/category.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::run {

// Memory of one compute op.
struct OpMemory {
  std::array<Bytes, model::kTensorCategories> live{};  // [category], at the op's end
  Bytes peak = 0;                                      // peak total since the end of the previous compute op
};

struct StepTimeline {
  std::int64_t step = 0;
  schedule::Timeline timeline;
  std::vector<std::vector<OpMemory>> memory;  // [device][op of the compute lane]; empty: not measured
  std::vector<std::vector<Seconds>> processor_seconds;  // [device][op]; 0 without a third number
  std::vector<std::vector<schedule::Event>> ranks;      // [rank][op], if several ranks form one device
};

std::string to_json(const std::vector<StepTimeline>& steps);

// Throws InputError that begins with `origin` for JSON of another form, for a step or rank that lacks ops
// (named), and for times that are not finite or run backwards.
std::vector<StepTimeline> parse_timelines(std::string_view json, const schedule::Program& program,
                                          std::string_view origin);

}  // namespace penstock::run
