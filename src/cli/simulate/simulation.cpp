// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/agree.h"
#include "cli/automatic_threads.h"
#include "cli/data/choices.h"
#include "cli/input/measured_run.h"
#include "cli/input/stage_costs.h"
#include "cli/profile/speeds.h"
#include "cli/simulate/slice_notes.h"
#include "files/mapped_file.h"
#include "files/option_file.h"
#include "files/run_files.h"
#include "run/costs.h"
#include "run/data_shares.h"
#include "run/memory.h"
#include "run/record/step_timeline.h"
#include "run/replicas.h"
#include "run/resolve/resolve.h"
#include "run/settle.h"
#include "run/step_plan.h"
#include "schedule/program_text.h"
#include "sim/costs/layer_cost.h"
#include "sim/costs/measured.h"
#include "sim/costs/table.h"
#include "sim/lowering.h"
#include "train/machine_probe.h"
#include "train/record/step_documents.h"
#include "train/trainable.h"

namespace penstock::cli {
namespace {

sim::Result evaluate_changed(const schedule::Program& program, const sim::Costs& costs,
                             const SimulateFlags& flags) {
  sim::Result result =
      sim::evaluate_changed(program, costs, flags.changes,
                            {.timeline = flags.memory_samples || (!flags.json && flags.sweep.empty()),
                             .memory_samples = flags.memory_samples});
  sim::require_end(result);
  return result;
}

// Refuses flags that do not apply to the source.
void refuse_seconds(const SimulateFlags& flags) {
  const std::string of_schedules = ": only for schedules; \"" + printable(flags.schedule.file) +
                                   "\" has its own costs, which --change scales";
  refuse_beside_run(flags.schedule);
  if (!flags.costs.empty()) throw InputError("--costs" + of_schedules);
  if (flags.times != sim::UnitTimes{})
    throw InputError(
        "--forward, --backward, --input, --weight, --transfer, --copy, --visit, --attention-share, "
        "--stage-layers" +
        of_schedules);
}

void check_factors(const SimulateFlags& flags) {
  if (!(std::isfinite(flags.expert_load) && flags.expert_load >= 1))
    throw InputError("--expert-load " + number_or_name(flags.expert_load) +
                     ": expected a number of 1 or more");
  if (!(std::isfinite(flags.attention) && flags.attention >= 0))
    throw InputError("--attention " + number_or_name(flags.attention) + ": expected a number of 0 or more");
}

void refuse_factors(const SimulateFlags& flags) {
  if (flags.expert_load != 1)
    throw InputError("--expert-load " + number(flags.expert_load, 3) +
                     ": only a run file (TOML) says what experts do");
  if (flags.attention != 1)
    throw InputError("--attention " + number(flags.attention, 3) +
                     ": only a run file (TOML) says what share of the time attention takes");
}

void refuse_copy_speeds(const SimulateFlags& flags) {
  if (flags.hardware.empty() && !flags.copy_gbps) return;
  throw InputError("--hardware and --copy-gbps are for run files (TOML); schedules have --copy SECONDS");
}

// Rate of the run's offloading copies, bytes/s each way; empty: the hardware's rate.
std::optional<double> copy_rate_of(const SimulateFlags& flags, const sim::Hardware& hardware,
                                   const run::Run& run) {
  if (flags.copy_gbps) return *flags.copy_gbps * 1e9;
  if (run.offload == 0 || run.offload_to == run::OffloadTo::Host || flags.hardware == kAssumed ||
      hardware.node.disk_gbps > 0)
    return {};
  throw InputError(
      (flags.hardware.empty() ? "this machine's speeds" : flags.hardware) +
      ": node.disk_gbps is missing, and memory.offload_to = \"disk\" needs it; give it, or --copy-gbps");
}

void check_copy_rate(const SimulateFlags& flags) {
  if (flags.copy_gbps && !(std::isfinite(*flags.copy_gbps) && *flags.copy_gbps > 0))
    throw InputError("--copy-gbps " + number_or_name(*flags.copy_gbps) +
                     ": expected a finite number above 0");
}

// Call before the machine is measured. A sweep of the key itself may have values for which the flags matter.
void refuse_idle_speeds(const SimulateFlags& flags, const run::Options& options) {
  const bool idle = options.parallel.ep == 1;
  if (flags.expert_load != 1 && idle && !flags.sweep.starts_with("parallel.ep="))
    throw InputError("--expert-load " + number(flags.expert_load, 3) +
                     ": there are expert ranks only with parallel.ep above 1");
  const double most =
      sim::greatest_load(options.model.shape, {.expert = static_cast<int>(options.parallel.ep)});
  if (flags.expert_load > most && !idle)
    throw InputError("--expert-load " + number(flags.expert_load, 3) + ": expected at most " +
                     two_digits(most, 1) + ", with which one rank has all rows that its experts can get");
  const NumberOrWord& offload = options.memory.offload;
  if (flags.copy_gbps && !offload.is_auto() && offload.number == 0 &&
      !flags.sweep.starts_with("memory.offload="))
    throw InputError("--copy-gbps: there are copies only with memory.offload above 0");
}

// Without a share of attention, exchange would move nothing.
void check_exchange_flags(const SimulateFlags& flags) {
  const std::string exchange = "--exchange " + flags.schedule.exchange;
  if (flags.schedule.exchange == "off") {
    if (flags.times.layers != sim::UnitTimes{}.layers)
      throw InputError("--stage-layers: layers count only with --exchange paired or levelled");
    return;
  }
  if (!flags.costs.empty())
    throw InputError(exchange +
                     ": --costs does not say which part of an action is attention, which exchange moves; "
                     "give unit times with --attention-share instead");
  if (!(flags.times.attention > 0))
    throw InputError(exchange + ": there is no attention to move; give --attention-share above 0");
}

Simulated simulate_schedule(const SimulateFlags& flags, const std::vector<std::string>& extras) {
  if (!extras.empty())
    throw InputError("\"" + extras.front() + "\" is not a flag of simulate; keys of a run file need one");
  refuse_factors(flags);
  refuse_copy_speeds(flags);
  if (flags.times.visit != 0 && !flags.schedule.vocabulary_parallel)
    throw InputError("--visit: there are visits only with --vocabulary-parallel");
  check_exchange_flags(flags);
  ScheduleFlags asked = flags.schedule;
  if (flags.times.forward > 0 && flags.times.transfer > 0)
    asked.transfer_in_forwards = flags.times.transfer / flags.times.forward;
  give_costs(asked, flags.times, flags.costs);
  const schedule::Schedule schedule = make_schedule(asked);
  if (flags.costs.empty()) {
    Simulated simulated{.program = lower_legal(schedule, asked)};
    const sim::UnitCosts costs(flags.times, unit_record(asked), simulated.program.slices);
    simulated.result = evaluate_changed(simulated.program, costs, flags);
    return simulated;
  }
  const sim::CostTable table = read_costs(flags.costs, schedule);
  const auto lowering = on_behalf_of("--costs " + printable(flags.costs),
                                     [&] { return sim::lowering_of(table, asked.offload); });
  Simulated simulated{.program = lower_legal(schedule, asked, lowering)};
  on_behalf_of(printable(flags.costs), [&] { table.require_complete(simulated.program); });
  simulated.result = evaluate_changed(simulated.program, table, flags);
  return simulated;
}

// Here "auto" means the device of that hardware; only `train` itself falls back to the CPU.
void take_device_of(const sim::Hardware& hardware, run::Options& options) {
  if (options.train.device == "auto" && hardware.device.backend == "cuda") options.train.device = "cuda";
}

// Probes this machine as if all ranks of the run were on this host.
run::Machine machine_for(const run::Options& options) {
  return train::probe_machine(automatic_threads(static_cast<int>(run::mesh_of(options).world())));
}

// A directory's run file is already resolved, and its program is in the directory.
run::Run laid_out_run(const std::string& directory) {
  run::Options options =
      run::read_fitted_options((std::filesystem::path(directory) / files::kRunFile).string());
  const run::Machine machine = machine_for(options);
  return run::lay_out(std::move(options), machine);
}

// Call before the machine is measured.
void require_documents(const SimulateFlags& flags, run::DataOptions data) {
  if (flags.step == 0) return;
  run::settle_mask(data);
  if (data.mask != "documents")
    throw InputError("--step " + std::to_string(flags.step) + ": " + printable(flags.schedule.file) +
                     " has no documents (data.mask = \"documents\"); all its steps are alike");
}

// Returns the run planned for the documents of that step, for the replica with the most work.
run::Run of_step(run::Run run, std::int64_t step) {
  if (step == 0) return run;
  run = run::planned(run, content_of_step(run, step));
  run.predicted = run::predict_memory(run, run.program);
  return run;
}

Words notes_of(const run::Run& run, double expert_load) {
  Words notes;
  if (const Refusal refusal = refusal_of([&] { train::require_trainable(run); }))
    notes.push_back("train refuses this run: " + refusal.text);
  if (run.options.moe.skew > 0 && expert_load == 1)
    notes.push_back(std::string("an even load is assumed, not that of moe.skew") +
                    (run.mesh.expert > 1 ? "; --expert-load gives the busiest rank more rows" : ""));
  for (const auto& [topic, text] : run.notes) notes.push_back(std::string(name_of(topic)) + " " + text);
  if (run.options.data.mask == "documents" && run.documents.empty())
    notes.push_back("one document a sequence is assumed; --step 1 takes those of the data's first step");
  return notes;
}

Simulated simulate_run_file(const SimulateFlags& flags, const std::vector<std::string>& overrides) {
  refuse_seconds(flags);
  check_copy_rate(flags);
  check_factors(flags);
  run::Options options = run::read_fitted_options(flags.schedule.file, overrides);
  require_documents(flags, options.data);
  refuse_idle_speeds(flags, options);
  run::Machine machine = machine_for(options);
  Speeds speeds = speeds_of(flags.hardware, options);
  machine.hardware = speeds.hardware;
  take_device_of(speeds.hardware, options);
  const run::Run run = of_step(run::resolve(std::move(options), machine), flags.step);
  const auto costs = run::costs_of(run, speeds.hardware,
                                   {.attention_factor = flags.attention,
                                    .copy_rate = copy_rate_of(flags, speeds.hardware, run),
                                    .expert_load = flags.expert_load});
  sim::Result result = evaluate_changed(run.program, costs, flags);
  return {.program = run.program,
          .result = std::move(result),
          .notes = notes_of(run, flags.expert_load),
          .speeds = std::move(speeds),
          .predicted = run.predicted,
          .mesh = run.mesh,
          .slices = notes_of_slices(run)};
}

constexpr std::size_t kLongestDocuments = std::size_t{1} << 30;

// Returns the run planned for the documents of the step that its timeline ends with; without a mask of
// documents, the run itself.
run::Run with_documents(run::Run run, const std::string& path, std::int64_t step) {
  if (run.options.data.mask != "documents") return run;
  train::StepDocuments documents =
      train::parse_step_documents(files::read_text(path, kLongestDocuments), run, path);
  if (documents.step != step)
    throw InputError(path + ": has the documents of step " + std::to_string(documents.step) + "; " +
                     files::kTimeline + " next to it ends with step " + std::to_string(step));
  return run::planned(run, std::move(documents.content));
}

// Returns whether the program has each stage on the same device as the run.
bool places_stages_as(const run::Run& run, const schedule::Program& program) {
  for (int device = 0; device < program.device_count(); ++device) {
    for (const schedule::Op& op : program.devices[device].ops)
      if (is_action(op.kind) && run.device_of_stage[op.key.stage] != device) return false;
  }
  return true;
}

// A run file is written when a run starts or resumes with other settings, but its program when the run ends.
void require_program_of(const run::Run& run, const schedule::Program& program, const std::string& path) {
  if (program.device_count() == run.devices() && program.stages == run.stages() &&
      program.slices == run.schedule.slices && places_stages_as(run, program))
    return;
  throw InputError(
      path + ": has another mesh, other slices or other micro-batches than " + files::kRunFile +
      " next to it, or its stages on other devices: it dates from the run's last end, and the run "
      "has since continued with other settings, or is not done");
}

Simulated simulate_run_directory(const SimulateFlags& flags, const std::vector<std::string>& overrides) {
  refuse_seconds(flags);
  refuse_factors(flags);
  refuse_copy_speeds(flags);
  if (flags.step != 0) throw InputError("--step: a run directory has the documents of its last step only");
  if (!overrides.empty())
    throw InputError("\"" + printable(overrides.front()) +
                     "\": a finished run is as it was; simulate its run.toml to change a key");
  const std::filesystem::path folder = flags.schedule.file;
  const auto file = [&](const char* name) { return (folder / name).string(); };
  run::Run laid_out = laid_out_run(folder.string());
  run::MeasuredRun measured = read_measured_run(folder.string(), flags.processor_time);
  const run::Run run =
      with_documents(std::move(laid_out), file(files::kDocuments), measured.steps.back().step);
  require_program_of(run, measured.program, file(files::kProgram));
  Simulated simulated{.program = std::move(measured.program), .typical = measured.typical};
  const auto bytes = run::costs_of(run, sim::assumed_hardware());
  const run::StepTimeline& typical = measured.typical_step();
  sim::MeasuredCosts costs(simulated.program, typical.timeline, bytes.bytes());
  if (flags.processor_time) {
    if (run::processor_seconds(typical) == 0)
      throw InputError(file(files::kTimeline) + ": has no processor seconds; leave --processor-time out");
    costs.take_processor_seconds(simulated.program, typical.processor_seconds);
  }
  simulated.result = evaluate_changed(simulated.program, costs, flags);
  for (const run::StepTimeline& step : measured.steps) {
    const sim::MeasuredCosts own(simulated.program, step.timeline, bytes.bytes());
    simulated.measured.push_back(
        {"step " + std::to_string(step.step),
         sim::account(simulated.program, step.timeline, own, {.memory_samples = flags.memory_samples}),
         step.memory, step.ranks});
  }
  simulated.predicted = run::predict_memory(run, simulated.program);
  simulated.mesh = run.mesh;
  simulated.slices = notes_of_slices(run);
  return simulated;
}

}  // namespace

run::Run resolved_run_file(const std::string& path) {
  run::Options options = run::read_fitted_options(path);
  run::Machine machine = machine_for(options);
  if (run::chooses_by_speed(options)) machine.hardware = speeds_of({}, options).hardware;
  return run::resolve(std::move(options), machine);
}

Simulated simulate_source(const SimulateFlags& flags, const std::vector<std::string>& overrides) {
  std::error_code error;
  if (std::filesystem::is_directory(flags.schedule.file, error))
    return simulate_run_directory(flags, overrides);
  if (flags.processor_time) throw InputError("--processor-time: only a run directory has measured it");
  if (flags.schedule.file.ends_with(".toml")) return simulate_run_file(flags, overrides);
  if (flags.step != 0) throw InputError("--step: only a run file (TOML) says what a step's documents are");
  return simulate_schedule(flags, overrides);
}

}  // namespace penstock::cli
