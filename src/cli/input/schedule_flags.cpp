// SPDX-License-Identifier: Apache-2.0
#include "cli/input/schedule_flags.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/input/number_flags.h"
#include "files/mapped_file.h"
#include "schedule/check/check.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "sim/costs/unit.h"
#include "sim/lowering.h"

namespace penstock::cli {
namespace {

std::string known_schedules() {
  std::string names;
  for (const schedule::Generator& generator : schedule::generators()) {
    names += (names.empty() ? "" : ", ") + std::string(generator.name);
  }
  return names;
}

void require_given(int value, const char* flag, const char* meaning) {
  if (value < 1) throw InputError(std::string(flag) + " is missing; give the number of " + meaning);
}

}  // namespace

void add_schedule_flags(CLI::App& command, ScheduleFlags& flags) {
  command.add_option("file", flags.file, "a schedule (CSV) or a run file, instead of --schedule");
  command.add_option("--schedule", flags.name, "one of: " + known_schedules());
  command.add_option("-p,--devices", flags.devices, "pipeline devices")->check(whole_number_from(1));
  command.add_option("-m,--micro-batches", flags.micro_batches, "micro-batches per step")
      ->check(whole_number_from(1));
  const auto take_slices = [&flags](const std::string& list) {
    flags.slices.clear();
    for (const std::string_view value : split(list, ','))
      flags.slices.push_back(static_cast<int>(*parse_integer(value)));
  };
  command
      .add_option_function<std::string>(
          "-n,--slices", take_slices,
          "slices per micro-batch, default 1; or a list, one number for each: 8,4,16")
      ->check(whole_numbers_from(1));
  command.add_option("-v,--chunks", flags.chunks, "stages per device; default: the schedule's own")
      ->check(whole_number_from(1));
  command.add_option("--group", flags.group, "slices per group of interleaved slimpipe; 0: automatic")
      ->check(whole_number_from(0));
  command.add_option(
      "--memory-limit", flags.memory_limit,
      "greedy only: records that a device may hold, in micro-batches, 1 or more, default p as in 1f1b; or in "
      "bytes, as in 6GiB, if --costs has records");
  command.add_option("--offload", flags.offload, "fraction of each record to offload, 0 to 1, default 0")
      ->check(share());
  command.add_flag(
      "--vocabulary-parallel", flags.vocabulary_parallel,
      "shard the vocabulary over the devices (slimpipe, or a file whose devices keep slots): the program "
      "gets vocabulary visits on all of them");
  command
      .add_option("--exchange", flags.exchange,
                  "context exchange (slimpipe, or a file whose devices keep slots), off (the default), "
                  "paired or levelled: devices compute attention for others")
      ->check(CLI::IsMember({"off", "paired", "levelled"}));
  command
      .add_option("--exchange-limit", flags.exchange_limit,
                  "K,V slices that a device may send in one slot, default 1000")
      ->check(whole_number_from(0));
}

void refuse_beside_file(const ScheduleFlags& flags) {
  const std::string file = "\"" + printable(flags.file) + "\"";
  if (!flags.name.empty())
    throw InputError("give either a file or --schedule, not both (" + file + " and \"" +
                     printable(flags.name) + "\")");
  if (flags.devices > 0 || flags.micro_batches > 0 || !flags.slices.empty() || flags.chunks > 0 ||
      flags.group > 0)
    throw InputError("-p, -m, -n, -v and --group need --schedule; " + file + " has its own sizes");
}

void refuse_beside_run(const ScheduleFlags& flags) {
  refuse_beside_file(flags);
  if (flags.offload != 0)
    throw InputError("--offload works only for schedules; a run file has the key memory.offload");
  if (flags.vocabulary_parallel)
    throw InputError(
        "--vocabulary-parallel works only for schedules; a run file has the key "
        "schedule.vocabulary_parallel");
  if (flags.exchange != "off")
    throw InputError("--exchange works only for schedules; a run file has the key schedule.exchange");
  if (flags.exchange_limit != ScheduleFlags{}.exchange_limit)
    throw InputError(
        "--exchange-limit works only for schedules; a run file has the key schedule.exchange_limit");
  if (!flags.memory_limit.empty())
    throw InputError("--memory-limit works only for schedules; a run file has the key memory.limit");
}

schedule::Schedule make_schedule(const ScheduleFlags& flags) {
  if (flags.exchange == "off" && flags.exchange_limit != ScheduleFlags{}.exchange_limit)
    throw InputError("--exchange-limit needs --exchange paired or levelled");
  if (!flags.file.empty()) {
    refuse_beside_file(flags);
    return schedule::parse_csv(files::read_text(flags.file, kLongestSchedule), flags.file);
  }
  if (flags.name.empty())
    throw InputError(
        "the schedule is missing; give a CSV file, or --schedule NAME -p DEVICES -m MICRO_BATCHES");
  return schedule::generate(flags.name, request_of(flags));
}

schedule::Request request_of(const ScheduleFlags& flags) {
  const schedule::Generator& generator = schedule::find_generator(flags.name);
  require_given(flags.devices, "-p", "devices");
  const bool listed = flags.slices.size() > 1;
  const int m =
      flags.micro_batches == 0 && listed ? static_cast<int>(flags.slices.size()) : flags.micro_batches;
  require_given(m, "-m", "micro-batches");
  if (listed && flags.slices.size() != static_cast<std::size_t>(m)) {
    throw InputError("-n lists " + std::to_string(flags.slices.size()) + " micro-batches; -m " +
                     std::to_string(m) + " needs as many, or one number for all");
  }
  schedule::Request request =
      schedule::request(flags.devices, m, flags.slices.empty() ? 1 : flags.slices.front(),
                        flags.chunks > 0 ? flags.chunks : generator.default_chunks);
  if (listed) request.slices = flags.slices;
  request.group = flags.group;
  request.transfer_in_forwards = flags.transfer_in_forwards;
  request.costs = flags.costs;
  return request;
}

schedule::Program lower_legal(const schedule::Schedule& schedule, const ScheduleFlags& flags,
                              schedule::Lowering bytes) {
  schedule::require_legal(schedule);
  bytes.vocabulary.parallel = flags.vocabulary_parallel;
  bytes.exchange = {.mode = schedule::parse_exchange_mode(flags.exchange), .limit = flags.exchange_limit};
  return schedule::lower(schedule, bytes);
}

schedule::Program lower_legal(const schedule::Schedule& schedule, const ScheduleFlags& flags) {
  return lower_legal(schedule, flags, sim::unit_lowering(flags.offload, flags.record));
}

sim::RecordBytes unit_record(const ScheduleFlags& flags) {
  return {.record = flags.offload > 0 ? flags.record : 0};
}

}  // namespace penstock::cli
