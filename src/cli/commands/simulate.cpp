// SPDX-License-Identifier: Apache-2.0
// penstock simulate: how long does a program take, how much memory does it need, and why does a device wait?
#include <unistd.h>

#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/input/number_flags.h"
#include "cli/input/output_path.h"
#include "cli/input/run_keys.h"
#include "cli/input/stage_costs.h"
#include "cli/report/run_report.h"
#include "cli/simulate/simulation.h"
#include "cli/simulate/sweep.h"
#include "files/atomic_file.h"
#include "report/html.h"
#include "report/terminal.h"
#include "report/trace.h"
#include "sim/print.h"
#include "train/record/progress.h"

namespace penstock::cli {
namespace {

void print_origin(const Speeds& speeds, const Words& notes) {
  if (!speeds.origin.empty()) std::cout << "speeds   " << described(speeds) << "\n";
  for (const std::string& note : notes) std::cout << note << "\n";
}

void print_for_people(const Simulated& simulated) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  print_origin(simulated.speeds, simulated.notes);
  std::cout << sim::to_table(simulated.result) << "\n"
            << report::terminal_timeline(
                   simulated.program, simulated.result.timeline,
                   {.width = terminal ? train::terminal_width() : 100, .colour = terminal});
  if (simulated.measured.empty()) return;
  const MeasuredStep& step = simulated.measured[simulated.typical];
  std::cout << "\n"
            << step.label << " measured, next to simulated from its own action times\n"
            << sim::to_comparison(step.result, simulated.result);
}

// The result for a run file has the extra keys "speeds" and "notes"; for a run directory "measured", with the
// same keys inside.
std::string json_of(const Simulated& simulated) {
  std::string json = sim::to_json(simulated.result);
  json.erase(json.rfind('}'));
  if (!simulated.speeds.origin.empty())
    json += ",\"speeds\":" + to_json(simulated.speeds) + ",\"notes\":" + json_quote_all(simulated.notes);
  if (!simulated.measured.empty())
    json += ",\"measured\":" + sim::to_json(simulated.measured[simulated.typical].result);
  return json + "}";
}

Exit carry_out_sweep(const SimulateFlags& flags, const std::vector<std::string>& overrides) {
  const Sweep swept = sweep(flags, overrides, flags.sweep);
  if (!flags.plot.empty()) files::write_atomically(flags.plot, to_svg(swept));
  if (!flags.json) print_origin(swept.speeds, notes_of(swept));
  std::cout << (flags.json ? to_json(swept) + "\n" : to_table(swept));
  return Exit::Done;
}

void refuse_idle_simulation_flags(const SimulateFlags& flags) {
  if (!flags.costs.empty() && flags.times != sim::UnitTimes{})
    throw InputError(
        "--forward, --backward, --input, --weight, --transfer, --copy, --visit, --attention-share and "
        "--stage-layers are unit times; --costs gives a table instead: keep one");
  if (flags.times.copy != sim::UnitTimes{}.copy && flags.schedule.offload == 0)
    throw InputError("--copy needs --offload; without it nothing is copied");
  if (flags.sweep.empty() && !flags.plot.empty())
    throw InputError("--plot draws a sweep; give --sweep KEY=V1,V2,... too");
  if (!flags.sweep.empty() && (!flags.report.empty() || !flags.trace.empty()))
    throw InputError("--report and --trace show one simulation; use --plot with --sweep");
  check_apart({{"--report", flags.report}, {"--trace", flags.trace}, {"--plot", flags.plot}},
              {flags.schedule.file, flags.costs, flags.hardware});
  check_output("--report", flags.report, kPageBegins);
  check_output("--trace", flags.trace, kTraceBegins);
  check_output("--plot", flags.plot, kPictureBegins);
}

Exit carry_out_simulation(const SimulateFlags& flags, const std::vector<std::string>& overrides) {
  refuse_idle_simulation_flags(flags);
  if (!flags.sweep.empty()) return carry_out_sweep(flags, overrides);
  const Simulated simulated = simulate_source(flags, overrides);
  // Files first: a reader of the output, such as head, may end this process.
  if (!flags.report.empty() || !flags.trace.empty()) {
    const report::Report report{.title = "penstock simulate: " + simulated.program.name,
                                .runs = {run_of(simulated)}};
    if (!flags.report.empty()) files::write_atomically(flags.report, report::html_page(report));
    if (!flags.trace.empty()) files::write_atomically(flags.trace, report::chrome_trace(report));
  }
  if (flags.json) {
    std::cout << json_of(simulated) << "\n";
  } else {
    print_for_people(simulated);
  }
  return Exit::Done;
}

void add_times(CLI::App& command, sim::UnitTimes& times) {
  command.add_option("--backward", times.backward, "seconds of a B, default 2");
  command.add_option("--copy", times.copy,
                     "seconds to copy a whole record, one way, with --offload; default 1");
  command.add_option("--visit", times.visit, "seconds of a vocabulary visit (LOSS), default 0");
  command
      .add_option("--attention-share", times.attention,
                  "attention's share of F, B and I, 0 to 1, as the mean over slices: it grows with the "
                  "slice's number")
      ->check(share());
  command
      .add_option("--stage-layers", times.layers,
                  "layers per stage, at each of which exchanged attention is served; default 4")
      ->check(whole_number_from(1));
}

void add_what_ifs(CLI::App& command, SimulateFlags& flags) {
  command
      .add_option(
          "--step", flags.step,
          "use this step's documents of the run's data, from the replica with the most work; run files")
      ->check(whole_number_from(1));
  command
      .add_option("--change", flags.changes,
                  "what if: device:2=1.5, link:0-1=4, kind:W=0.5 (times as long); may be repeated")
      ->allow_extra_args(false);
  command.add_option("--expert-load", flags.expert_load,
                     "what if the busiest expert rank had this many times the mean rows; run files");
  command.add_option("--attention", flags.attention,
                     "what if attention took this many times as long; run files");
  command.add_option("--hardware", flags.hardware,
                     "hardware file with the speeds; or assumed, to measure nothing; default: this "
                     "machine's profile, measured once; run files");
  command.add_option("--copy-gbps", flags.copy_gbps,
                     "rate of offloading copies instead, in 1e9 bytes per second and direction; run files");
  command.add_option("--sweep", flags.sweep,
                     "a table over values of one key: slices=1,2,4,8,16; with --schedule the given seconds "
                     "are for a whole micro-batch on a device, divided among its slices and chunks; those of "
                     "--costs are each op's own");
  command.add_option("--plot", flags.plot, "with --sweep: draw makespan and peak of saved bytes here (SVG)");
  command.add_flag("--processor-time", flags.processor_time,
                   "run directories: time actions by the processor seconds that they used, for runs whose "
                   "ranks shared cores");
}

}  // namespace

void add_simulate_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command = program.add_subcommand(
      "simulate", "Simulate a schedule, a run file, or a finished run next to its measurements.");
  add_schedule_flags(*command, flags->schedule);
  command->get_option("file")->description("a schedule (CSV), a run file (TOML), or a run directory");
  add_cost_flags(*command, flags->times, flags->costs);
  add_times(*command, flags->times);
  add_what_ifs(*command, *flags);
  command->add_flag("--json", flags->json, "the result as JSON on stdout");
  command->add_option("--report", flags->report, "write an HTML report here");
  command->add_option("--trace", flags->trace, "write a Chrome trace here");
  take_run_keys(*command);
  command->callback([command, flags, &exit_code] {
    flags->memory_samples = !flags->report.empty() || !flags->trace.empty();
    exit_code = carry_out_simulation(*flags, command->remaining());
  });
}

}  // namespace penstock::cli
