// SPDX-License-Identifier: Apache-2.0
#include "cli/fit_memory.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/layer_policies.h"
#include "cli/plan_run.h"
#include "schedule/generators/generator.h"

namespace penstock::cli {
namespace {

constexpr model::Policy kCheapestFirst[] = {model::Policy::None, model::Policy::Balanced,
                                            model::Policy::BalancedFc1, model::Policy::Full};

bool is_sliced(const ResolvedRun& run) { return std::ranges::max(run.schedule.slices) > 1; }

std::size_t fullest_device(const model::MemoryTable& table) {
  const auto fullest = std::ranges::max_element(table, {}, &model::DeviceMemory::total);
  return static_cast<std::size_t>(fullest - table.begin());
}

Bytes greatest_total(const model::MemoryTable& table) { return table[fullest_device(table)].total(); }

// The run with another policy everywhere that no range of its own names.
ResolvedRun with_policy(ResolvedRun run, model::Policy policy) {
  run.options.memory.policy = name_of(policy);
  run.options.memory.keep.clear();
  run.keep = layer_policies(run.options.memory, run.layers, is_sliced(run));
  return run;
}

// Twice and four times the slices under full, where the schedule has slices at all.
std::optional<ResolvedRun> with_slices(const ResolvedRun& run, int factor) {
  const schedule::ScheduleOptions& chosen = run.options.schedule;
  if (!chosen.file.empty() || !schedule::find_generator(chosen.name).sliced_sibling.empty()) return {};
  train::RunOptions options = run.options;
  options.schedule.slices *= factor;
  options.memory.policy = name_of(model::Policy::Full);
  options.memory.keep.clear();
  options.memory.limit.clear();
  try {
    return resolve(options, run.threads);
  } catch (const InputError&) {
    return {};  // more slices than tokens, or not a number that the schedule takes
  }
}

bool is_automatic(const NumberOrWord& offload) { return !offload.word.empty(); }

ResolvedRun with_share(ResolvedRun run, double share) {
  run.options.memory.offload = {.number = share, .word = {}};
  return run;
}

// The least share of offloading, in whole percent, with which the run fits; nothing when none is enough.
std::optional<double> least_share(const ResolvedRun& run, Bytes limit) {
  constexpr double kWhole = 100;
  const auto fits = [&](int percent) {
    return greatest_total(predict_memory(with_share(run, percent / kWhole))) <= limit;
  };
  if (fits(0)) return 0.0;
  if (!fits(100)) return {};
  int too_little = 0;
  int enough = 100;
  while (enough - too_little > 1) {
    const int middle = (too_little + enough) / 2;
    (fits(middle) ? enough : too_little) = middle;
  }
  return enough / kWhole;
}

// The run with its share, or with the least that fits where that is "auto"; nothing when it does not fit.
std::optional<ResolvedRun> with_enough_offload(const ResolvedRun& run, std::optional<Bytes> limit) {
  if (!is_automatic(run.options.memory.offload)) {
    return fits(run) ? std::optional(run) : std::nullopt;
  }
  const std::optional<double> share = limit ? least_share(run, *limit) : 0.0;
  return share ? std::optional(with_share(run, *share)) : std::nullopt;
}

std::string note_of(const ResolvedRun& asked, const ResolvedRun& chosen, std::optional<Bytes> limit) {
  const schedule::MemoryOptions& memory = chosen.options.memory;
  const bool any_policy = asked.options.memory.policy == "auto";
  const bool any_share = is_automatic(asked.options.memory.offload);
  std::string note = any_policy ? "policy " + memory.policy : "";
  if (any_share) note += (any_policy ? " with offload " : "offload ") + exact_number(memory.offload.number);
  if (!limit) {
    return note + ": memory.limit sets none, so nothing need " +
           (any_policy ? "be recomputed" : std::string()) + (any_policy && any_share ? " or " : "") +
           (any_share ? "leave" : "");
  }
  return note + ": the " + (any_policy ? "cheapest" : "least") + " that fits in " + memory.limit + ", with " +
         print_bytes(greatest_total(predict_memory(chosen)));
}

std::string settings_that_fit(const ResolvedRun& run, Bytes limit) {
  Bytes least = greatest_total(predict_memory(run));
  std::string least_with = "these settings";
  const auto fits = [&](const ResolvedRun& other, const std::string& settings) {
    const Bytes total = greatest_total(predict_memory(other));
    if (total < least) least_with = settings;
    least = std::min(least, total);
    return total <= limit;
  };
  const auto praise = [&](const std::string& settings) {
    return settings + " would fit with " + print_bytes(least);
  };
  for (const model::Policy policy : kCheapestFirst) {
    const std::string settings = "memory.policy = " + json_quote(name_of(policy));
    if (fits(with_policy(run, policy), settings)) return praise(settings);
  }
  for (const int factor : {2, 4}) {
    const auto sliced = with_slices(run, factor);
    if (!sliced) continue;
    const std::string settings =
        "memory.policy = \"full\" with schedule.slices = " + std::to_string(sliced->options.schedule.slices);
    if (fits(*sliced, settings)) return praise(settings);
  }
  return "no policy fits: the least is " + print_bytes(least) + ", with " + least_with +
         "; raise memory.limit above that or parallel.pp, or lower train.micro_batch or data.seq_len";
}

std::string share_that_fits(const ResolvedRun& run, Bytes limit) {
  const std::optional<double> share = least_share(run, limit);
  return share ? "; memory.offload = " + exact_number(*share) + " would fit" : std::string();
}

[[noreturn]] void refuse(const ResolvedRun& run, const model::MemoryTable& predicted, Bytes limit) {
  const std::size_t device = fullest_device(predicted);
  const auto [category, bytes] = model::largest_category(predicted[device]);
  throw NoAnswer("memory.limit = " + json_quote(run.options.memory.limit) + ": device " +
                 std::to_string(device) + " would need " + print_bytes(predicted[device].total()) +
                 ", of which " + std::string(category) + " are the most, " + print_bytes(bytes) + "; " +
                 settings_that_fit(run, limit) + share_that_fits(run, limit));
}

}  // namespace

std::optional<Bytes> memory_limit(const schedule::MemoryOptions& options) {
  if (options.limit.empty()) return {};
  return on_behalf_of("memory.limit", [&] { return parse_bytes(options.limit); });
}

void choose_memory(ResolvedRun& run) {
  const std::optional<Bytes> limit = memory_limit(run.options.memory);
  const bool any_policy = run.options.memory.policy == "auto";
  if (!any_policy && !is_automatic(run.options.memory.offload)) return;
  ResolvedRun candidate = run;
  for (const model::Policy policy : kCheapestFirst) {
    if (any_policy) candidate = with_policy(run, policy);
    std::optional<ResolvedRun> fitted = with_enough_offload(candidate, limit);
    if (fitted) {
      fitted->memory_note = note_of(run, *fitted, limit);
      run = std::move(*fitted);
      return;
    }
    if (!any_policy) break;
  }
  if (is_automatic(run.options.memory.offload)) candidate = with_share(candidate, 1);
  refuse(candidate, predict_memory(candidate), *limit);
}

bool fits(const ResolvedRun& run) {
  const std::optional<Bytes> limit = memory_limit(run.options.memory);
  return !limit || greatest_total(predict_memory(run)) <= *limit;
}

void require_fit(const ResolvedRun& run, const model::MemoryTable& predicted) {
  const std::optional<Bytes> limit = memory_limit(run.options.memory);
  if (limit && greatest_total(predicted) > *limit) refuse(run, predicted, *limit);
}

}  // namespace penstock::cli
