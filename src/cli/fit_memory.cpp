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
    return resolve(options);
  } catch (const InputError&) {
    return {};  // more slices than tokens, or not a number that the schedule takes
  }
}

std::string settings_that_fit(const ResolvedRun& run, Bytes limit) {
  Bytes least = greatest_total(predict_memory(run));
  for (const model::Policy policy : kCheapestFirst) {
    const Bytes total = greatest_total(predict_memory(with_policy(run, policy)));
    least = std::min(least, total);
    if (total <= limit) {
      return "memory.policy = " + json_quote(name_of(policy)) + " would fit with " + print_bytes(total);
    }
  }
  for (const int factor : {2, 4}) {
    const auto sliced = with_slices(run, factor);
    const Bytes total = sliced ? greatest_total(predict_memory(*sliced)) : least;
    least = std::min(least, total);
    if (total <= limit) {
      return "memory.policy = \"full\" with schedule.slices = " +
             std::to_string(sliced->options.schedule.slices) + " would fit with " + print_bytes(total);
    }
  }
  return "no policy fits: the least is " + print_bytes(least) +
         "; raise memory.limit to that or parallel.pp, or lower train.micro_batch or data.seq_len";
}

[[noreturn]] void refuse(const ResolvedRun& run, const model::MemoryTable& predicted, Bytes limit) {
  const std::size_t device = fullest_device(predicted);
  const auto [category, bytes] = model::largest_category(predicted[device]);
  throw NoAnswer("memory.limit = " + json_quote(run.options.memory.limit) + ": device " +
                 std::to_string(device) + " would need " + print_bytes(predicted[device].total()) +
                 ", of which " + std::string(category) + " are the most, " + print_bytes(bytes) + "; " +
                 settings_that_fit(run, limit));
}

}  // namespace

std::optional<Bytes> memory_limit(const schedule::MemoryOptions& options) {
  if (options.limit.empty()) return {};
  return on_behalf_of("memory.limit", [&] { return parse_bytes(options.limit); });
}

void choose_policy(ResolvedRun& run) {
  if (run.options.memory.policy != "auto") return;
  const std::optional<Bytes> limit = memory_limit(run.options.memory);
  for (const model::Policy policy : kCheapestFirst) {
    ResolvedRun candidate = with_policy(run, policy);
    const Bytes total = limit ? greatest_total(predict_memory(candidate)) : 0;
    if (limit && total > *limit) continue;
    candidate.memory_note =
        "policy " + std::string(name_of(policy)) +
        (limit ? ": the cheapest that fits in " + run.options.memory.limit + ", with " + print_bytes(total)
               : ": memory.limit sets none, so nothing need be recomputed");
    run = std::move(candidate);
    return;
  }
  const ResolvedRun least = with_policy(run, model::Policy::Full);
  refuse(least, predict_memory(least), *limit);
}

void require_fit(const ResolvedRun& run, const model::MemoryTable& predicted) {
  const std::optional<Bytes> limit = memory_limit(run.options.memory);
  if (limit && greatest_total(predicted) > *limit) refuse(run, predicted, *limit);
}

}  // namespace penstock::cli
