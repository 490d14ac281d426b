// SPDX-License-Identifier: Apache-2.0
#include "cli/input/measured_run.h"

#include <filesystem>

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
  run::require_measured(directory);
  const std::string program = files::read_text(program_file, kLongestSchedule);
  const std::string timeline = files::read_text(timeline_file, kLongestTimeline);
  return run::parse_measured_run({program, program_file}, {timeline, timeline_file}, processor_time);
}

}  // namespace penstock::cli
