// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"
#include "run/resolve/shortened.h"
#include "run/settle.h"

namespace penstock::run {
namespace {

// More chunks or slices only add messages; each larger schedule would take seconds to generate.
constexpr std::int64_t kMostChunks = 8, kMostTried = 256, kMostActions = 1 << 20;

// schedule.slice_tokens sets the number of slices itself.
bool opens_slices(const ScheduleOptions& asked) { return asked.slices == 0 && asked.slice_tokens == 0; }

struct Candidate {
  std::int64_t slices = 0, chunks = 0;
  Run shortened;  // laid out
  Seconds seconds = 0;
};

Options with_numbers(Options options, std::int64_t slices, std::int64_t chunks) {
  options.schedule.slices = slices;
  options.schedule.chunks = chunks;
  return options;
}

// Powers of two, and those times pp, since interleaved schedules need groups of pp slices.
std::set<std::int64_t> numbers_of_slices(const Options& options) {
  const std::int64_t units = ceil_div(options.data.seq_len, options.schedule.slice_unit);
  std::set<std::int64_t> numbers;
  for (std::int64_t n = 1; n <= kMostTried; n *= 2) {
    for (const std::int64_t slices : {n, n * options.parallel.pp}) {
      if (slices <= std::min(units, kMostTried)) numbers.insert(slices);
    }
  }
  return numbers;
}

std::set<std::int64_t> numbers_of_chunks(const Options& options) {
  std::set<std::int64_t> numbers;
  const std::int64_t layers = options.model.shape.layers;
  for (std::int64_t v = 1; v <= kMostChunks; ++v) {
    if (v == 1 || v * options.parallel.pp <= layers) numbers.insert(v);
  }
  return numbers;
}

bool is_large(const Options& options) {
  const std::int64_t replicas = std::max<std::int64_t>(options.parallel.dp, 1);
  const std::int64_t micro_batches = options.train.batch / (options.train.micro_batch * replicas);
  return options.parallel.pp * std::max<std::int64_t>(options.schedule.chunks, 1) *
             std::max<std::int64_t>(options.schedule.slices, 1) * micro_batches >
         kMostActions;
}

// Whether choose_memory could still make the run fit.
bool may_shrink(const MemoryOptions& memory) {
  return memory.policy == "auto" || memory.offload.is_auto();
}

// The run as it will execute: a schedule made for given costs uses the machine's.
Run arranged(const Options& options, const Machine& machine) {
  Run run = lay_out(options, machine);
  choose_order(run);
  return run;
}

// All numbers that the schedule accepts, fewer chunks and slices first. Throws the first refusal if none.
std::vector<Candidate> candidates_of(const Options& options, const Machine& machine) {
  const ScheduleOptions& asked = options.schedule;
  const std::set<std::int64_t> all_chunks =
      asked.chunks == 0 ? numbers_of_chunks(options) : std::set{asked.chunks};
  const std::set<std::int64_t> all_slices =
      opens_slices(asked) ? numbers_of_slices(options) : std::set{asked.slices};
  std::vector<Candidate> candidates;
  std::optional<InputError> refusal;
  for (const std::int64_t chunks : all_chunks) {
    for (const std::int64_t slices : all_slices) {
      const Options tried = with_numbers(options, slices, chunks);
      if (!candidates.empty() && is_large(tried)) continue;
      try {
        Run run = shortened(arranged(tried, machine));
        candidates.push_back({run.options.schedule.slices, run.options.schedule.chunks, std::move(run)});
      } catch (const InputError& error) {
        if (!refusal) refusal = error;
      }
    }
  }
  if (candidates.empty()) throw InputError(*refusal);
  return candidates;
}

std::string note_of(const Options& options, const Candidate& chosen, std::size_t simulated,
                    bool least_memory) {
  std::string what;
  if (opens_slices(options.schedule)) what = counted(chosen.slices, "slice");
  if (options.schedule.chunks == 0) what += (what.empty() ? "" : " and ") + counted(chosen.chunks, "chunk");
  return what + (least_memory ? ": within 1 % of the fastest of " : ": the fastest of ") +
         std::to_string(simulated) + " in simulation, " + print_seconds(chosen.seconds) +
         (least_memory ? ", with least memory" : "");
}

}  // namespace

bool leaves_slices_open(const Options& options) {
  return options.schedule.file.empty() && (opens_slices(options.schedule) || options.schedule.chunks == 0);
}

std::string choose_slices(Options& options, const Machine& machine) {
  if (!leaves_slices_open(options)) return {};
  settle_model(options);  // the number of layers limits that of chunks
  std::vector<Candidate> candidates = candidates_of(options, machine);
  // Has all micro-batches: schedules may keep records of more of them than the shortened run has.
  const auto whole = [&](const Candidate& candidate) {
    return arranged(with_numbers(options, candidate.slices, candidate.chunks), machine);
  };
  if (!options.memory.limit.empty() && !may_shrink(options.memory)) {
    const auto too_large = std::ranges::stable_partition(
        candidates, [&](const Candidate& candidate) { return fits(whole(candidate)); });
    if (too_large.begin() != candidates.begin()) candidates.erase(too_large.begin(), too_large.end());
  }
  for (Candidate& candidate : candidates) candidate.seconds = simulated_seconds(candidate.shortened);
  const auto fastest = std::ranges::min_element(candidates, {}, &Candidate::seconds);
  const Candidate* chosen = &*fastest;
  std::optional<Bytes> least;  // peak of the chosen, once there is another to compare with
  for (const Candidate& candidate : candidates) {
    if (&candidate == &*fastest || kWorthwhile * candidate.seconds > fastest->seconds) continue;
    if (!least) least = greatest_total(whole(*chosen));
    const Bytes peak = greatest_total(whole(candidate));
    if (peak < *least) {
      chosen = &candidate;
      least = peak;
    }
  }
  const std::string note = note_of(options, *chosen, candidates.size(), chosen != &*fastest);
  if (opens_slices(options.schedule)) options.schedule.slices = chosen->slices;
  options.schedule.chunks = chosen->chunks;
  return note;
}

}  // namespace penstock::run
