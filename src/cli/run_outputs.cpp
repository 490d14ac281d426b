// SPDX-License-Identifier: Apache-2.0
#include "cli/run_outputs.h"

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "base/units.h"
#include "cli/run_report.h"
#include "files/atomic_file.h"
#include "report/html.h"
#include "report/trace.h"
#include "schedule/program_text.h"

namespace penstock::cli {
namespace {

Bytes total_of(const train::BytesByCategory& bytes) {
  const auto found = std::ranges::find(bytes, "total", &std::pair<std::string, Bytes>::first);
  return found == bytes.end() ? 0 : found->second;
}

}  // namespace

void write_outputs(const train::RunPlan& plan, const train::RunOutcome& outcome,
                   const train::RunDirectory& directory) {
  if (outcome.timelines.empty()) return;
  files::write_atomically(directory.file("program.txt"), schedule::to_text(plan.program));
  files::write_atomically(directory.timeline(), train::to_json(outcome.timelines));
  if (!outcome.profiles.empty()) {
    files::write_atomically(directory.file("profile.json"), train::to_json(outcome.profiles));
  }
  const report::Report report{.title = "penstock train", .runs = {run_of_directory(directory.path())}};
  files::write_atomically(directory.file("trace.json"), report::chrome_trace(report));
  files::write_atomically(directory.report(), report::html_page(report));
}

std::string profile_of(const schedule::Program& program, const train::RunOutcome& outcome) {
  Seconds compute = 0;
  for (const train::StepTimeline& step : outcome.timelines) {
    for (std::size_t device = 0; device < step.timeline.devices.size(); ++device) {
      for (const schedule::Event& event : step.timeline.devices[device]) {
        const schedule::OpKind kind = program.devices[device].ops[event.op].kind;
        if (lane_of(kind) == schedule::Lane::Compute) compute += event.end - event.start;
      }
    }
  }
  return "compute time of a step, all devices together (mean of the last " +
         std::to_string(outcome.profiles.size()) + ")\n" + profile_table(outcome.profiles, compute);
}

std::string memory_comparison(const train::Summary& summary) {
  std::ostringstream text;
  text << "memory    peak of each device\n";
  for (std::size_t device = 0; device < summary.devices.size(); ++device) {
    const Bytes predicted = total_of(summary.devices[device].predicted_bytes);
    const Bytes measured = total_of(summary.devices[device].measured_bytes);
    text << "  device " << device << "  measured " << print_bytes(measured) << ", predicted "
         << print_bytes(predicted) << " ("
         << number(100.0 * (static_cast<double>(predicted) / static_cast<double>(measured) - 1.0), 1)
         << " %)\n";
  }
  return text.str();
}

std::string list_outputs(const train::RunDirectory& directory) {
  return directory.path() +
         ": run.toml, metrics.jsonl, summary.json, weights.safetensors,\n          program.txt, "
         "timeline.json, "
         "trace.json (for Perfetto)\nreport    " +
         directory.report() + "\n";
}

}  // namespace penstock::cli
