// SPDX-License-Identifier: Apache-2.0
#include "cli/input/measured_run.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "cli/input/schedule_flags.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "schedule/check/check.h"
#include "schedule/program_text.h"

namespace penstock::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestTimeline = std::size_t{1} << 30;

std::size_t median_step(const std::vector<train::StepTimeline>& steps, bool processor_time) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t step) {
    return processor_time ? processor_seconds(steps[step]) : steps[step].timeline.makespan();
  });
  return order[(order.size() - 1) / 2];
}

}  // namespace

Seconds processor_seconds(const train::StepTimeline& step) {
  Seconds sum = 0;
  for (const auto& device : step.processor_seconds) sum += std::reduce(device.begin(), device.end());
  return sum;
}

MeasuredRun read_measured_run(const std::string& directory, bool processor_time) {
  const auto file = [&](const char* name) { return (fs::path(directory) / name).string(); };
  MeasuredRun run;
  run.program = schedule::parse_program(files::read_text(file(files::kProgram), kLongestSchedule),
                                        file(files::kProgram));
  schedule::require_legal(run.program, file(files::kProgram));  // the simulation relies on it
  run.steps = train::parse_timelines(files::read_text(file(files::kTimeline), kLongestTimeline), run.program,
                                     file(files::kTimeline));
  run.typical = median_step(run.steps, processor_time);
  return run;
}

}  // namespace penstock::cli
