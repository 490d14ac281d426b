// SPDX-License-Identifier: Apache-2.0
#include "cli/input/measured_run.h"

#include <filesystem>

#include "base/error.h"
#include "cli/input/schedule_flags.h"
#include "files/mapped_file.h"
#include "files/run_files.h"

namespace penstock::cli {

namespace {

constexpr std::size_t kLongestTimeline = std::size_t{1} << 30;

}  // namespace

run::MeasuredRun read_measured_run(const std::string& directory, bool processor_time) {
  const auto file = [&](const char* name) { return (std::filesystem::path(directory) / name).string(); };
  const std::string program_file = file(files::kProgram), timeline_file = file(files::kTimeline);
  const auto has = [&](const char* name) { return std::filesystem::exists(file(name)); };
  if (has(files::kMetrics) && !has(files::kProgram) && !has(files::kTimeline)) {
    // The directory may have been moved since its run file was written.
    const std::string resume =
        "penstock train " + file(files::kRunFile) + " --output.dir " + directory + " --resume";
    if (has(files::kSummary))
      throw InputError(directory + ": the start that ended the run did no step, so there is no " +
                       files::kTimeline + "; more steps write one: " + resume +
                       " --train.steps N, with the ranks it had");
    throw InputError(directory + ": the run has not ended, and " + files::kProgram + " and " +
                     files::kTimeline + " are written when it does; wait for it, or continue it: " + resume +
                     ", with the ranks it had");
  }
  const std::string program = files::read_text(program_file, kLongestSchedule);
  const std::string timeline = files::read_text(timeline_file, kLongestTimeline);
  return run::parse_measured_run({program, program_file}, {timeline, timeline_file}, processor_time);
}

}  // namespace penstock::cli
