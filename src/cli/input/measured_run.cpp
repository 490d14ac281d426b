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
  if (has(files::kMetrics) && !has(files::kProgram) && !has(files::kSummary))
    throw InputError(directory + ": the run has not ended, and " + files::kProgram + " and " +
                     files::kTimeline +
                     " are written when it does; wait for it, or continue it with penstock train " +
                     file(files::kRunFile) + " --resume");
  const std::string program = files::read_text(program_file, kLongestSchedule);
  const std::string timeline = files::read_text(timeline_file, kLongestTimeline);
  return run::parse_measured_run({program, program_file}, {timeline, timeline_file}, processor_time);
}

}  // namespace penstock::cli
