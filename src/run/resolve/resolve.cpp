// SPDX-License-Identifier: Apache-2.0
#include "run/resolve/resolve.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "run/arrange.h"
#include "run/context.h"
#include "run/exchange.h"
#include "run/layer_split.h"
#include "run/lowering.h"
#include "run/memory.h"
#include "run/replicas.h"
#include "run/resolve/choose.h"
#include "run/settle.h"
#include "schedule/generators/generator.h"
#include "schedule/placement.h"

namespace penstock::run {
namespace {

constexpr std::int64_t kFewGathers =
    2;  // per stage and step: one before the forwards, one before the backwards

std::optional<Bytes> limit_of(const MemoryOptions& options) {
  if (options.limit.empty()) return {};
  return on_behalf_of("memory.limit", [&] { return parse_bytes(options.limit); });
}

std::vector<int> devices_of(const schedule::Schedule& schedule) {
  const schedule::Placement placement(schedule);
  std::vector<int> devices;
  for (int stage = 0; stage < schedule.stages; ++stage) devices.push_back(placement.device_of(stage, 0));
  return devices;
}

// Maximum number of times that a step gathers the weights of a stage on a device.
std::int64_t most_gathers(const schedule::Program& program) {
  std::int64_t most = 0;
  for (const schedule::DeviceProgram& device : program.devices) {
    std::map<int, std::int64_t> gathers;
    for (const schedule::Op& op : device.ops) {
      if (op.kind == schedule::OpKind::GatherWeights && op.key.stage < program.stages)
        most = std::max(most, ++gathers[op.key.stage]);
    }
  }
  return most;
}

// The same devices, stages and micro-batches, breadth-first, which gathers least; nullopt if refused.
std::optional<schedule::Program> breadth_first(const Run& run) {
  Options options = run.options;
  options.schedule = {.name = "breadth-first", .slices = 1, .chunks = run.stages() / run.devices()};
  try {
    return program_of(lay_out(options, run.machine));
  } catch (const InputError&) {
    return {};
  }
}

std::string note_of_gathers(const Run& run) {
  const std::int64_t most = most_gathers(run.program);
  if (!run.shards_weights() || most <= kFewGathers) return {};
  const std::string note = name_of_schedule(run.options) + " gathers the weights of a stage up to " +
                           std::to_string(most) + " times a step";
  const std::optional<schedule::Program> other = breadth_first(run);
  if (!other || most_gathers(*other) >= most) return note;
  return note + "; with schedule.name = \"breadth-first\" it would be " +
         std::to_string(most_gathers(*other));
}

// Adds a note if slices are not cut where the given unit would cut them.
void note_other_cuts(Run& run, std::int64_t given_unit) {
  Options given = run.options;
  given.schedule.slice_unit = given_unit;
  if (given_unit == run.options.schedule.slice_unit || cuts_of(given, run.schedule.slices) == run.slices)
    return;
  run.add_note(Topic::Context, "slices are cut at multiples of " +
                                   std::to_string(run.options.schedule.slice_unit) +
                                   " tokens, since each has 2 · parallel.cp pieces");
}

}  // namespace

Run lay_out(Options options, const Machine& machine) {
  settle(options);
  Run run;
  run.schedule = arrange(options);
  run.options = std::move(options);
  const Options& settled = run.options;
  run.machine = machine;
  run.mesh = mesh_of(settled);
  run.replica_sharding = replica_sharding_of(settled);
  run.precision = model::parse_precision(settled.train.precision);
  run.threads = settled.train.threads > 0 ? static_cast<int>(settled.train.threads) : machine.threads;
  run.kernels = machine.kernels(run.precision, run.threads);
  if (settled.train.device == "cuda") {
    run.kernels = model::on_gpu(run.kernels, settled.numerics.repeatable, settled.data.mask == "documents");
  }
  run.device_of_stage = devices_of(run.schedule);
  run.slices = cuts_of(settled, run.schedule.slices);
  run.offload = settled.memory.offload.number;
  run.offload_to = settled.memory.offload_to == "disk" ? OffloadTo::Disk : OffloadTo::Host;
  run.memory_limit = limit_of(settled.memory);
  const std::string& exchange = settled.schedule.exchange;
  if (exchange != "auto") run.exchange = schedule::parse_exchange_mode(exchange);
  split_layers(run);
  if (run.exchange != schedule::ExchangeMode::Off) check_exchange(run);
  return run;
}

namespace {

// Whether exchange = "auto" leaves a choice. If the options cannot be laid out, resolve() reports why.
bool may_exchange(const Options& options) try {
  return why_no_exchange(lay_out(options, {})).empty();
} catch (const std::runtime_error&) {
  return false;
}

}  // namespace

bool chooses_by_speed(const Options& options) {
  const ScheduleOptions& chosen = options.schedule;
  return leaves_slices_open(options) || (options.parallel.cp_mode == "auto" && options.parallel.cp > 1) ||
         (chosen.exchange == "auto" && may_exchange(options)) ||
         (is_made_for_costs(chosen) && chosen.forward.empty());
}

void require_possible(Options options) {
  if (options.schedule.slices == 0 || options.schedule.chunks == 0) return;
  lay_out(std::move(options), {});
}

Run resolve(Options options, const Machine& machine) {
  const bool chooses_context = options.parallel.cp_mode == "auto";
  const std::int64_t unit = options.schedule.slice_unit;
  const std::string slices_note = choose_slices(options, machine);
  Run run = lay_out(std::move(options), machine);
  run.add_note(Topic::Schedule, slices_note);
  choose_order(run);
  if (chooses_context) choose_context(run);
  choose_memory(run);
  choose_exchange(run);  // needs the final policy
  run.program = program_of(run);
  run.predicted = predict_memory(run, run.program);
  run.add_note(Topic::Gathers, note_of_gathers(run));
  note_other_cuts(run, unit);
  return run;
}

void check_ranks(const Run& run, std::int64_t ranks) {
  const std::int64_t needed = run.mesh.world();
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const bool pipeline_alone = needed == run.mesh.pipeline;
  require(ranks == needed, text(ranks) + (ranks == 1 ? " rank was" : " ranks were") + " started, but " +
                               (pipeline_alone ? "parallel.pp = " + text(run.mesh.pipeline)
                                               : "parallel.tp·cp·dp·pp = " + text(needed)) +
                               " needs " + text(needed) + "; start " + text(needed) + " (--ranks " +
                               text(needed) + ", or mpirun -np " + text(needed) + ")" +
                               (pipeline_alone ? ", or set parallel.pp = " + text(ranks) : std::string()));
}

}  // namespace penstock::run
