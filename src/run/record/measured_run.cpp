// SPDX-License-Identifier: Apache-2.0
#include "run/record/measured_run.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>

#include "base/error.h"
#include "files/run_files.h"
#include "schedule/check/check.h"
#include "schedule/program_text.h"

namespace penstock::run {
namespace {

std::size_t median_step(const std::vector<StepTimeline>& steps, bool processor_time) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t step) {
    return processor_time ? processor_seconds(steps[step]) : steps[step].timeline.makespan();
  });
  return order[(order.size() - 1) / 2];
}

}  // namespace

std::optional<std::string> why_unmeasured(const std::string& directory) {
  const auto file = [&](const char* name) { return (std::filesystem::path(directory) / name).string(); };
  std::error_code unreadable;  // opening the file tells why
  const auto has = [&](const char* name) { return std::filesystem::exists(file(name), unreadable); };
  if (!has(files::kMetrics) || has(files::kProgram) || has(files::kTimeline)) return std::nullopt;
  // The directory may have been moved since its run file was written.
  const std::string resume =
      "penstock train " + file(files::kRunFile) + " --output.dir " + directory + " --resume";
  if (has(files::kSummary))
    return std::string("the start that ended the run did no step, so there is no ") + files::kTimeline +
           "; more steps write one: " + resume + " --train.steps N, with the ranks it had";
  return std::string("the run has not ended (it runs, or its last start failed), and ") + files::kProgram +
         " and " + files::kTimeline + " are written when it does; wait for it, or continue it: " + resume +
         ", with the ranks it had";
}

void require_measured(const std::string& directory) {
  if (const auto why = why_unmeasured(directory)) throw InputError(directory + ": " + *why);
}

Seconds processor_seconds(const StepTimeline& step) {
  Seconds sum = 0;
  for (const auto& device : step.processor_seconds) sum += std::reduce(device.begin(), device.end());
  return sum;
}

MeasuredRun parse_measured_run(const NamedText& program, const NamedText& timeline, bool processor_time) {
  MeasuredRun run;
  const std::string name(program.name);
  run.program = schedule::parse_program(program.text, name);
  if (run.program.devices.empty()) throw InputError(name + ": has no device");
  schedule::require_legal(run.program, name);  // simulations rely on it
  run.steps = parse_timelines(timeline.text, run.program, timeline.name);
  run.typical = median_step(run.steps, processor_time);
  return run;
}

}  // namespace penstock::run
