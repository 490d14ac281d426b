// SPDX-License-Identifier: Apache-2.0
// penstock report: writes one HTML page for one or several runs or simulations.
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/input/output_path.h"
#include "cli/report/run_report.h"
#include "cli/tell.h"
#include "files/atomic_file.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "report/html.h"
#include "report/trace.h"
#include "run/record/measured_run.h"

namespace penstock::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> sources;
  std::string output;
  std::string trace;
};

std::vector<report::Run> runs_of_source(const std::string& source, bool needs_timeline) {
  std::error_code error;
  if (std::filesystem::is_directory(source, error)) {
    const auto why = needs_timeline ? std::nullopt : run::why_unmeasured(source);
    if (!why) return runs_of_directory(source);
    tell_remark(source + ": " + *why);
    return {run_without_timeline(source, *why)};
  }
  SimulateFlags flags;
  flags.schedule.file = source;
  flags.memory_samples = true;
  report::Run run = run_of(simulate_source(flags, {}));
  run.name = source;
  return {run};
}

// The page of a single run directory is written into it.
std::string default_output(const std::vector<std::string>& sources) {
  std::error_code error;
  const bool own = sources.size() == 1 && std::filesystem::is_directory(sources.front(), error);
  if (!own && files::is_there(files::kLock))
    throw InputError(std::string(files::kReport) +
                     " is the page of the run in this folder; give this one another name by --output");
  return own ? (std::filesystem::path(sources.front()) / files::kReport).string() : files::kReport;
}

}  // namespace

void add_report_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<ReportFlags>();
  CLI::App* command =
      program.add_subcommand("report", "Write one HTML page of runs and simulations, side by side.");
  command->add_option("sources", flags->sources, "run directories, run files (TOML) or schedules (CSV)")
      ->required();
  command->add_option("-o,--output", flags->output,
                      "the page; default: report.html, in the run directory if that is the only source");
  command->add_option("--trace", flags->trace, "write a Chrome trace of all sources here");
  command->callback([flags, &exit_code] {
    const std::string output = flags->output.empty() ? default_output(flags->sources) : flags->output;
    check_apart({{"--output", output}, {"--trace", flags->trace}}, flags->sources);
    check_output("--output", output, kPageBegins);
    check_output("--trace", flags->trace, kTraceBegins);
    report::Report report{.title = "penstock report", .runs = {}};
    for (const std::string& source : flags->sources) {
      for (report::Run& run : runs_of_source(source, !flags->trace.empty()))
        report.runs.push_back(std::move(run));
    }
    files::write_atomically(output, report::html_page(report));
    if (!flags->trace.empty()) files::write_atomically(flags->trace, report::chrome_trace(report));
    std::cout << printable_lines(output) << "\n";
    exit_code = Exit::Done;
  });
}

}  // namespace penstock::cli
