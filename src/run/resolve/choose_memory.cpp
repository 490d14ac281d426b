// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "run/layer_split.h"
#include "run/lowering.h"
#include "run/memory.h"
#include "run/replicas.h"
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"
#include "schedule/generators/generator.h"

namespace penstock::run {
namespace {

constexpr model::Policy kCheapestFirst[] = {model::Policy::None, model::Policy::Balanced,
                                            model::Policy::BalancedFc1, model::Policy::Full};

// The run with `factor` times the slices under policy full; nullopt if the schedule does not allow that.
std::optional<Run> with_slices(const Run& run, int factor) {
  const ScheduleOptions& chosen = run.options.schedule;
  if (!chosen.file.empty() || !schedule::find_generator(chosen.name).sliced_sibling.empty()) return {};
  Options options = run.options;
  options.schedule.slices *= factor;
  try {
    Run sliced = with_policy(lay_out(options, run.machine), model::Policy::Full);
    sliced.memory_limit = run.memory_limit;  // may differ from the options'
    return sliced;
  } catch (const InputError&) {
    return {};  // more slices than tokens, or a number that the schedule rejects
  }
}

Run with_share(Run run, double share) {
  run.options.memory.offload = {.number = share, .word = {}};
  run.offload = share;
  return run;
}

Run with_percent(const Run& run, int percent) { return with_share(run, percent / 100.0); }

// Bisects between two shares in percent, of which only `enough` fits: the nearest to `too_much` that fits.
template <class Fits>
int nearest_percent(int too_much, int enough, Fits&& fits_with) {
  while (std::abs(enough - too_much) > 1) {
    const int middle = (too_much + enough) / 2;
    (fits_with(middle) ? enough : too_much) = middle;
  }
  return enough;
}

// The run with the least share of offloading, in whole percent, that makes it fit; nullopt if none does.
std::optional<Run> with_least_share(const Run& run) {
  const auto fits_with = [&](int percent) { return fits(with_percent(run, percent)); };
  if (fits_with(0)) return with_percent(run, 0);
  if (!fits_with(100)) return {};
  return with_percent(run, nearest_percent(0, 100, fits_with));
}

// The run with its given share, or with the least that fits if "auto"; nullopt if it does not fit.
std::optional<Run> with_enough_offload(const Run& run) {
  if (!run.options.memory.offload.is_auto()) {
    return fits(run) ? std::optional(run) : std::nullopt;
  }
  return with_least_share(run);
}

std::string note_of_memory(const Run& asked, const Run& chosen) {
  const MemoryOptions& memory = chosen.options.memory;
  const bool any_policy = asked.options.memory.policy == "auto";
  const bool any_share = asked.options.memory.offload.is_auto();
  std::string note = any_policy ? "policy " + memory.policy : "";
  if (any_share) note += (any_policy ? " with offload " : "offload ") + exact_number(memory.offload.number);
  if (chosen.replica_sharding != asked.replica_sharding)
    note += " and shard " + chosen.options.parallel.shard;
  if (!chosen.memory_limit) {
    return note + ": memory.limit sets no limit, so nothing need be " +
           (any_policy ? "recomputed" : std::string()) + (any_policy && any_share ? " or " : "") +
           (any_share ? "offloaded" : "");
  }
  return note + ": the " + (any_policy ? "cheapest" : "least") + " that fits in " + memory.limit + ", with " +
         print_bytes(greatest_total(chosen));
}

// Offloaded records free memory on their device and use memory on its host: names the least share that fits a
// device, or the greatest that fits a host.
std::string share_that_fits(const Run& run, Bytes room, const BytesNeeded& needed) {
  const auto fits_with = [&](int percent) { return needed(with_percent(run, percent)) <= room; };
  const bool fits_without = fits_with(0), fits_with_all = fits_with(100);
  if (fits_without == fits_with_all) return {};
  const Run other =
      with_percent(run, nearest_percent(fits_without ? 100 : 0, fits_without ? 0 : 100, fits_with));
  if (!fits(other)) return {};
  return "; memory.offload = " + exact_number(other.offload) + " would fit";
}

// Rounded up: as memory.limit it is enough.
std::string print_needed(Bytes bytes) {
  Bytes printed = bytes;
  while (parse_bytes(print_bytes(printed)) < bytes) printed += std::max<Bytes>(bytes / 1000, 1);
  return print_bytes(printed);
}

}  // namespace

std::string settings_that_fit(const Run& run, Bytes room, const BytesNeeded& needed) {
  Bytes least = needed(run);
  std::string least_with = "these settings";
  const auto suffices = [&](const Run& other, const std::string& settings) {
    const Bytes bytes = needed(other);
    if (bytes < least) least_with = settings;
    least = std::min(least, bytes);
    return bytes <= room && fits(other);
  };
  const auto advise = [&](const std::string& settings) {
    return settings + " would fit with " + print_needed(least) + share_that_fits(run, room, needed);
  };
  for (const model::Policy policy : kCheapestFirst) {
    const std::string settings = "memory.policy = " + json_quote(name_of(policy));
    if (suffices(with_policy(run, policy), settings)) return advise(settings);
  }
  for (const int factor : {2, 4}) {
    const auto sliced = with_slices(run, factor);
    if (!sliced) continue;
    const std::string settings =
        "memory.policy = \"full\" with schedule.slices = " + std::to_string(sliced->options.schedule.slices);
    if (suffices(*sliced, settings)) return advise(settings);
  }
  return "no policy fits: the least is " + print_needed(least) + ", with " + least_with +
         "; more memory than that, a greater parallel.pp, or a smaller train.micro_batch or data.seq_len "
         "would " +
         "fit" + share_that_fits(run, room, needed);
}

namespace {

[[noreturn]] void refuse(const Run& run, const model::MemoryTable& predicted) {
  const std::size_t device = fullest_device(predicted);
  const auto [category, bytes] = model::largest_category(predicted[device]);
  throw NoAnswer("memory.limit = " + json_quote(run.options.memory.limit) + ": device " +
                 std::to_string(device) + " would need " + print_needed(predicted[device].total()) +
                 ", of which the largest part is " + std::string(category) + ", " + print_bytes(bytes) +
                 "; " + settings_that_fit(run, *run.memory_limit));
}

}  // namespace

Run with_policy(Run run, model::Policy policy) {
  run.options.memory.policy = name_of(policy);
  run.options.memory.keep.clear();
  split_layers(run);
  return run;
}

namespace {

// The first policy that fits, or the run's own, with the least offload; nullopt if none does.
std::optional<Run> cheapest_that_fits(const Run& run) {
  if (run.options.memory.policy != "auto") return with_enough_offload(run);
  for (const model::Policy policy : kCheapestFirst) {
    if (auto fitted = with_enough_offload(with_policy(run, policy))) return fitted;
  }
  return {};
}

}  // namespace

void choose_memory(Run& run) {
  const bool any_policy = run.options.memory.policy == "auto";
  const bool any_states = run.options.parallel.shard == "auto";
  if (any_states) run.options.parallel.shard = "optimizer";
  if (!any_policy && !run.options.memory.offload.is_auto()) return;
  std::optional<Run> fitted = cheapest_that_fits(run);
  const bool may_shard =
      any_states && any_policy && run.replica_sharding == schedule::ReplicaSharding::Optimizer;
  if (!fitted && may_shard) fitted = cheapest_that_fits(with_sharded_weights(run));
  if (fitted) {
    fitted->add_note(Topic::Memory, note_of_memory(run, *fitted));
    run = std::move(*fitted);
    return;
  }
  Run candidate = any_policy ? with_policy(run, model::Policy::Full) : run;
  if (run.options.memory.offload.is_auto()) candidate = with_share(candidate, 1);
  refuse(candidate, predict_memory(candidate, program_of(candidate)));
}

Bytes greatest_total(const Run& run) {
  const model::MemoryTable table = predict_memory(run, program_of(run));
  return table[fullest_device(table)].total();
}

bool fits(const Run& run) { return !run.memory_limit || greatest_total(run) <= *run.memory_limit; }

void require_fit(const Run& run) {
  const Bytes total = run.predicted[fullest_device(run.predicted)].total();
  if (run.memory_limit && total > *run.memory_limit) refuse(run, run.predicted);
}

}  // namespace penstock::run
