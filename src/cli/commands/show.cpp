// SPDX-License-Identifier: Apache-2.0
// penstock show: draws a schedule, or the ranks of a mesh.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/input/mesh_flags.h"
#include "cli/input/schedule_flags.h"
#include "cli/input/stage_costs.h"
#include "cli/simulate/compare_schedules.h"
#include "cli/simulate/simulation.h"
#include "cli/tell.h"
#include "report/drawing.h"
#include "report/grid.h"
#include "report/svg.h"
#include "report/trace.h"
#include "run/costs.h"
#include "schedule/check/check.h"
#include "schedule/generators/greedy.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "schedule/text.h"
#include "sim/costs/unit.h"
#include "sim/result.h"
#include "train/record/progress.h"

namespace penstock::cli {
namespace {

struct ShowFlags {
  ScheduleFlags schedule;
  MeshFlags mesh;
  std::string format;  // empty: text
  bool program = false;
  bool colour = false;
  bool compare = false;
  sim::UnitTimes times;  // for schedules made for given costs
  std::string costs;
};

std::string describe(const schedule::Schedule& schedule) {
  return printable_lines(schedule.name) + ": " + counted(schedule.device_count(), "device") + ", " +
         counted(schedule.stages, "stage") + ", " + counted(schedule.micro_batches(), "micro-batch") + "\n";
}

std::string notes_of_generator(const schedule::Generator& generator) {
  std::string text;
  if (generator.replicates_parameters)
    text += "every stage lives on two devices: two copies of the parameters\n";
  if (!generator.fixed_gradient_order) {
    text +=
        "adds weight gradients in another micro-batch order than 1f1b: equal within a tolerance, not bit "
        "for bit\n";
  }
  return text;
}

std::string notes(const ShowFlags& flags) {
  if (flags.schedule.name.empty()) return {};
  const schedule::Generator& generator = schedule::find_generator(flags.schedule.name);
  std::string text = notes_of_generator(generator);
  if (generator.made_for_costs)
    text += "its order comes from: " + schedule::make_greedy(request_of(flags.schedule)).origin() + "\n";
  return text;
}

std::string notes(const run::Run& run) {
  const run::ScheduleOptions& chosen = run.options.schedule;
  std::string text = chosen.file.empty() ? notes_of_generator(schedule::find_generator(chosen.name)) : "";
  for (const auto& [topic, note] : run.notes) text += std::string(name_of(topic)) + " " + note + "\n";
  return text;
}

// Drawings use unit times; only schedules made for given costs use other times.
void refuse_idle_costs(const ShowFlags& flags) {
  refuse_idle_limit(flags.schedule);
  const bool given = flags.times != sim::UnitTimes{} || !flags.costs.empty();
  if (!given || is_made_for_costs(flags.schedule)) return;
  throw InputError(
      "--forward, --input, --weight, --transfer, --costs: only greedy is made for given costs; for other "
      "schedules give them to simulate");
}

// Simulates a program with F = 1, B = 2, I = W = 1, vocabulary visits 1/2, copies of a whole record 1.
sim::Result in_unit_times(const schedule::Program& program, const sim::RecordBytes& record) {
  sim::Result result = sim::evaluate(program, sim::UnitCosts({.visit = 0.5}, record));
  sim::require_end(result);
  return result;
}

std::string unit_of_times() {
  return "time units (" + report::describe(report::UnitTimes{}) + ", LOSS = 0.5, copy of a record = 1)";
}

// The largest record of the run, of which copies are shares.
sim::RecordBytes record_of(const run::Run& run) {
  if (run.offload == 0) return {};
  const sim::AnalyticCosts costs = run::costs_of(run, sim::assumed_hardware());
  Bytes largest = 0;
  for (const schedule::DeviceProgram& device : run.program.devices) {
    for (const schedule::Op& op : device.ops) {
      if (op.kind == schedule::OpKind::Offload) largest = std::max(largest, costs.record(op.key).record);
    }
  }
  return {.record = largest};
}

std::string trace_of(const ShowFlags& flags, const schedule::Schedule& schedule) {
  const schedule::Program program = lower_legal(schedule, flags.schedule);
  const sim::Result result = in_unit_times(program, unit_record(flags.schedule));
  return report::chrome_trace({.prefix = "", .program = program, .timeline = result.timeline});
}

// Copies and vocabulary visits are ops of a program, not actions of a schedule.
std::string svg_of(const ShowFlags& flags, const schedule::Schedule& schedule) {
  const bool plain =
      flags.schedule.offload == 0 && !flags.schedule.vocabulary_parallel && flags.schedule.exchange == "off";
  if (plain) return report::svg(report::draw(schedule));
  const schedule::Program program = lower_legal(schedule, flags.schedule);
  const sim::Result result = in_unit_times(program, unit_record(flags.schedule));
  return report::svg(report::draw(program, result.timeline, unit_of_times()));
}

// "-" after actions partly computed elsewhere, "+" after those that compute for other devices.
report::GridOptions::Signs exchange_signs(const schedule::Schedule& schedule,
                                          const schedule::Program& program) {
  report::GridOptions::Signs signs;
  const auto sign = [&](int device, const schedule::Action& action, char sign) {
    const auto& row = schedule.devices[device];
    const auto found = std::ranges::find_if(row, [&](const schedule::Action& other) {
      return other.key == action.key && other.kind == action.kind;  // in an overlapped pair or not
    });
    signs[{device, static_cast<int>(found - row.begin())}] = sign;
  };
  for (const schedule::Exchange& exchange : program.exchanges) {
    sign(exchange.owner, exchange.of, '-');
    sign(exchange.partner, exchange.during, '+');
  }
  return signs;
}

// What a grid shows besides its schedule.
struct Shown {
  std::string notes;               // lines
  std::string exchange;            // "off", "paired" or "levelled"
  schedule::Program program = {};  // of the exchanges; without them it may be empty
};

std::string grid_of(const ShowFlags& flags, const schedule::Schedule& schedule, const Shown& shown) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  report::GridOptions options{.colour = terminal || flags.colour,
                              .signs = exchange_signs(schedule, shown.program),
                              .most_columns = terminal ? train::terminal_width() : 0};
  std::string text = describe(schedule) + shown.notes;
  if (shown.exchange != "off") {
    text += "exchange " + shown.exchange +
            ": \"-\" other devices attend to a part of the action's context, \"+\" the device attends for "
            "another\n";
  }
  return text + report::grid(schedule, options);
}

std::string grid_of(const ShowFlags& flags, const schedule::Schedule& schedule) {
  Shown shown{.notes = notes(flags), .exchange = flags.schedule.exchange};
  if (shown.exchange != "off") shown.program = lower_legal(schedule, flags.schedule);
  return grid_of(flags, schedule, shown);
}

// A run file determines its own schedule and program, for any mesh.
std::string show_run(const ShowFlags& flags) {
  refuse_beside_run(flags.schedule);
  const run::Run run = resolved_run_file(flags.schedule.file);
  if (flags.program) return schedule::to_text(run.program);
  if (flags.format == "csv") return schedule::to_csv(run.schedule);
  if (flags.format == "json") return schedule::to_json(run.schedule) + "\n";
  if (flags.format == "grid")
    return grid_of(flags, run.schedule,
                   {.notes = notes(run),
                    .exchange = std::string(schedule::name_of(run.exchange)),
                    .program = run.program});
  const auto timeline = in_unit_times(run.program, record_of(run)).timeline;
  if (flags.format == "svg") return report::svg(report::draw(run.program, timeline, unit_of_times()));
  return report::chrome_trace({.prefix = "", .program = run.program, .timeline = timeline});
}

void tell_if_illegal(const ShowFlags& flags, const schedule::Schedule& schedule) {
  const auto findings = schedule::check(schedule);
  if (findings.empty()) return;
  tell("this schedule is illegal; penstock check " + flags.schedule.file + " says why");
}

// Compares at one number of slices, for the schedules that take slices.
std::string comparison(const ScheduleFlags& flags) {
  if (flags.slices.size() > 1)
    throw InputError("-n lists " + std::to_string(flags.slices.size()) +
                     " micro-batches; --compare takes one number for all");
  return compare_schedules(flags);
}

std::string show(ShowFlags flags) {
  if (flags.format.empty()) flags.format = flags.mesh.wanted ? "text" : "grid";
  if (flags.mesh.wanted) return mesh_drawing(flags.mesh, std::max(flags.schedule.devices, 1), flags.format);
  if (flags.format == "text") throw InputError("--format text needs --mesh; use grid");
  refuse_idle_costs(flags);
  if (flags.compare) return comparison(flags.schedule);
  if (flags.schedule.name.empty() && flags.schedule.file.ends_with(".toml")) return show_run(flags);
  give_costs(flags.schedule, flags.times, flags.costs);
  const schedule::Schedule schedule = make_schedule(flags.schedule);
  if (!flags.schedule.file.empty()) tell_if_illegal(flags, schedule);
  if (flags.program) return schedule::to_text(lower_legal(schedule, flags.schedule));
  if (flags.format == "svg") return svg_of(flags, schedule);
  if (flags.format == "trace") return trace_of(flags, schedule);
  const bool offloads = flags.schedule.offload != 0;
  if (offloads || flags.schedule.vocabulary_parallel)
    throw InputError(std::string(offloads ? "--offload" : "--vocabulary-parallel") +
                     " needs a program: add --program, --format svg or --format trace");
  if (flags.schedule.exchange != "off" && flags.format != "grid")
    throw InputError("--exchange needs a program: add --program, --format grid, svg or trace");
  if (flags.format == "csv") return schedule::to_csv(schedule);
  if (flags.format == "json") return schedule::to_json(schedule) + "\n";
  return grid_of(flags, schedule);
}

}  // namespace

void add_show_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = program.add_subcommand(
      "show", "Draw a schedule, or the ranks of a mesh, or print either for another program.");
  add_schedule_flags(*command, flags->schedule);
  add_cost_flags(*command, flags->times, flags->costs);
  CLI::Option* format = command->add_option("--format", flags->format,
                                            "grid, csv, json, svg or trace; for a mesh text, json or svg");
  format->check(CLI::IsMember({"grid", "csv", "json", "svg", "trace", "text"}));
  CLI::Option* lowered = command->add_flag("--program", flags->program,
                                           "print the lowered program as text instead: with transfers and "
                                           "optimizer step");
  CLI::Option* compare = command->add_flag("--compare", flags->compare,
                                           "print a table of all schedules at the size given by -p, -m and "
                                           "-n");
  lowered->excludes(format);
  for (const char* of_one_schedule :
       {"file", "--schedule", "--chunks", "--group", "--offload", "--vocabulary-parallel", "--exchange",
        "--exchange-limit", "--memory-limit", "--forward", "--input", "--weight", "--transfer", "--costs"})
    compare->excludes(command->get_option(of_one_schedule));
  compare->excludes(format)->excludes(lowered);
  command->add_flag("--colour", flags->colour, "use colours in a pipe too");
  add_mesh_flags(*command, flags->mesh, {"--help", "-p", "--format"});
  command->callback([flags, &exit_code] {
    std::cout << show(*flags);
    exit_code = Exit::Done;
  });
}

}  // namespace penstock::cli
