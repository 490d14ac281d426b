// SPDX-License-Identifier: Apache-2.0
#include "cli/input/stage_costs.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "cli/input/measured_run.h"
#include "files/mapped_file.h"
#include "schedule/generators/generator.h"
#include "schedule/program_words.h"
#include "sim/costs/measured.h"

namespace penstock::cli {
namespace {

using schedule::OpKind;
using schedule::StageCosts;

bool is_run(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

sim::CostTable costs_at(const std::string& path, const sim::TableExtent& extent) {
  if (!is_run(path)) return sim::parse_cost_table(files::read_text(path, kLongestSchedule), path, extent);
  const run::MeasuredRun run = read_measured_run(path);
  return sim::average(run.program, run.typical_step().timeline, extent, "--costs " + path);
}

// Mean over neighbours: a schedule is made for a single transfer time.
Seconds mean_transfer(const sim::CostTable& table) {
  const int devices = table.extent().devices;
  const auto seconds = [&](const sim::Link& link) {
    return link.latency + static_cast<double>(table.message(0)) / link.bytes_per_second;
  };
  Seconds sum = 0;
  for (int device = 0; device + 1 < devices; ++device)
    sum += seconds(table.link(device, device + 1)) + seconds(table.link(device + 1, device));
  return devices > 1 ? sum / (2 * (devices - 1)) : 0;
}

StageCosts costs_of(const sim::CostTable& table, const std::string& path) {
  StageCosts costs{.transfer = mean_transfer(table)};
  const auto take = [&](OpKind kind, int stage, std::vector<Seconds>& times) {
    const auto seconds = table.find_seconds(kind, stage, 0);
    const std::string word(schedule::word_of(kind).text);
    if (!seconds)
      throw InputError(
          "--costs " + path + ": no time for " + word + " of stage " + std::to_string(stage) +
          "; greedy splits backwards into I and W: give a table with lines \"" + word +
          " STAGE SLICE SECONDS\", or a run of a schedule that splits them, as zb-h1 and zb-v do");
    times.push_back(*seconds);
  };
  for (int stage = 0; stage < table.extent().stages; ++stage) {
    take(OpKind::Forward, stage, costs.forward);
    take(OpKind::BackwardInput, stage, costs.input);
    take(OpKind::BackwardWeight, stage, costs.weight);
  }
  return costs;
}

StageCosts costs_of(const sim::UnitTimes& times) {
  return {.forward = {sim::checked_seconds("--forward", times.forward)},
          .input = {sim::checked_seconds("--input", times.input)},
          .weight = {sim::checked_seconds("--weight", times.weight)},
          .transfer = sim::checked_seconds("--transfer", times.transfer)};
}

// A plain number counts micro-batches with unit records; bytes need the table's records.
void give_limit(StageCosts& costs, const std::string& limit, int chunks, const sim::CostTable* table) {
  const std::string given = "--memory-limit " + printable(limit) + ": ";
  if (const auto micro_batches = parse_number(limit)) {
    if (*micro_batches < 1)
      throw InputError(given + "a device holds at least one micro-batch; expected 1 or more, or bytes");
    costs.limit = static_cast<Bytes>(std::floor(std::min(*micro_batches, 1e9) * chunks));
    return;
  }
  costs.limit = on_behalf_of("--memory-limit", [&] { return parse_bytes(limit); });
  if (costs.limit == 0) throw InputError(given + "nothing fits in 0 bytes");
  for (int stage = 0; table && stage < table->extent().stages; ++stage) {
    const sim::RecordBytes record = table->record(schedule::make_key(stage));
    costs.record.push_back(std::max(record.record, record.weight_record));
  }
  if (std::ranges::all_of(costs.record, [](Bytes size) { return size == 0; }))
    throw InputError(given +
                     "bytes need --costs with a table that has records; or give micro-batches, as in 4");
}

}  // namespace

void add_cost_flags(CLI::App& command, sim::UnitTimes& times, std::string& costs) {
  command.add_option("--forward", times.forward, "seconds of an F, default 1");
  command.add_option("--input", times.input, "seconds of an I, default 1");
  command.add_option("--weight", times.weight, "seconds of a W, default 1");
  command.add_option("--transfer", times.transfer,
                     "seconds from device to device; a delay that occupies no link; default 0");
  command.add_option(
      "--costs", costs,
      "a table of costs (seconds by kind, stage and slice; links; bytes), or the directory of a run that "
      "measured them");
}

sim::CostTable read_costs(const std::string& path, const schedule::Schedule& schedule) {
  schedule::require_legal(schedule);  // an illegal one may have any number of stages and slices
  if (is_run(path)) sim::require_even_slices(schedule, "--costs " + path);
  return costs_at(path, sim::extent_of(schedule));
}

bool is_made_for_costs(const ScheduleFlags& flags) {
  return !flags.name.empty() && schedule::find_generator(flags.name).made_for_costs;
}

void refuse_idle_limit(const ScheduleFlags& flags) {
  if (flags.memory_limit.empty() || is_made_for_costs(flags)) return;
  throw InputError(
      "--memory-limit works only with greedy, which is made for it; other schedules have a fixed memory "
      "need");
}

void give_costs(ScheduleFlags& flags, const sim::UnitTimes& times, const std::string& costs) {
  refuse_idle_limit(flags);
  if (!is_made_for_costs(flags)) return;
  const schedule::Request request = schedule::checked_request(flags.name, request_of(flags));
  if (costs.empty()) {
    flags.costs = costs_of(times);
    if (!flags.memory_limit.empty()) give_limit(flags.costs, flags.memory_limit, request.chunks, nullptr);
    return;
  }
  const sim::CostTable table = costs_at(costs, {request.devices * request.chunks, 1, request.devices});
  flags.costs = costs_of(table, costs);
  if (!flags.memory_limit.empty()) give_limit(flags.costs, flags.memory_limit, request.chunks, &table);
}

}  // namespace penstock::cli
