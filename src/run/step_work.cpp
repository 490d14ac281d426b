// SPDX-License-Identifier: Apache-2.0
#include "run/step_work.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "model/slice_halves.h"
#include "schedule/passes/compute.h"
#include "schedule/slot_grid.h"

namespace penstock::run {
namespace {

using schedule::Key;
using schedule::SliceWork;

Flops all_of(const SliceWork& work) {
  return std::accumulate(work.halves.begin(), work.halves.end(), work.own);
}

// Adds up the slots in which every device runs a forward.
void add_slots(const Run& run, const std::map<Key, SliceWork>& works, StepWork& step) {
  const schedule::Program program = schedule::compute_only(run.schedule);
  const auto grid = schedule::find_slot_grid(program);
  if (!grid) return;
  std::map<Key, Flops> moved;  // work added to (+) or taken from (-) the forward of the key
  for (const schedule::Exchange& exchange : run.program.exchanges) {
    if (exchange.backward()) continue;
    const auto& halves = works.at(exchange.of.key.at_stage(0)).halves;
    const auto first = halves.begin() + exchange.first_half;
    const Flops work = std::accumulate(first, first + exchange.halves, Flops{0});
    moved[exchange.of.key] -= work;
    moved[exchange.during.key] += work;
  }
  for (const schedule::FullSlot& slot : schedule::full_slots(program, *grid)) {
    if (slot.backward) continue;
    std::vector<Flops> loads;
    for (std::size_t device = 0; device < slot.ops.size(); ++device) {
      const Key key = program.devices[device].ops[slot.ops[device]].key;
      const auto there = moved.find(key);
      loads.push_back(all_of(works.at(key.at_stage(0))) + (there == moved.end() ? 0 : there->second));
    }
    step.slowest_of_slots += *std::ranges::max_element(loads);
    step.mean_of_slots +=
        std::accumulate(loads.begin(), loads.end(), Flops{0}) / static_cast<double>(loads.size());
  }
}

}  // namespace

SliceWork slice_work(const Run& run, std::span<const model::Documents> documents, const Key& key) {
  const auto& cut = run.slices[key.micro_batch];
  const model::TokenRange& queries = cut[key.slice];
  const model::Documents causal(static_cast<std::size_t>(run.sequences()),
                                {cut.back().begin + cut.back().length});
  const model::Documents& own = documents.empty() ? causal : documents[key.micro_batch];
  const model::TokenWork work = token_work(run.options);
  SliceWork found{.own = work.of(static_cast<double>(std::ssize(own) * queries.length),
                                 model::attended_pairs(own, queries, queries)),
                  .halves = {}};
  std::vector<model::TokenRange> keys;
  for (int half = 0; half < 2 * key.slice; ++half) {
    const model::SlicePart part = model::part_in_halves(half / 2, cut[half / 2].length, half, 1);
    keys.push_back({cut[half / 2].begin + part.begin, part.length});
  }
  for (const double pairs : model::pairs_with_earlier(own, queries, keys))
    found.halves.push_back(work.of(0, pairs));
  return found;
}

StepWork step_work(const Run& run, std::span<const model::Documents> documents) {
  StepWork step;
  std::map<Key, SliceWork> works;  // for stage 0: all stages are alike
  const model::TokenWork work = token_work(run.options);
  for (int j = 0; j < std::ssize(run.slices); ++j) {
    const auto sequences =
        static_cast<double>(documents.empty() ? run.sequences() : std::ssize(documents[j]));
    const auto tokens = static_cast<double>(run.slices[j].back().begin + run.slices[j].back().length);
    Flops micro_batch = 0;
    for (int i = 0; i < std::ssize(run.slices[j]); ++i) {
      const Key key = schedule::make_key(0, j, i);
      const SliceWork& slice = works[key] = slice_work(run, documents, key);
      micro_batch += all_of(slice);
    }
    const double causal = sequences * tokens * (tokens + 1) / 2;
    step.causal_pairs += causal;
    step.pairs += (micro_batch - work.of(sequences * tokens, 0)) / work.pair;
    step.work += micro_batch;
    step.greatest_micro_batch = std::max(step.greatest_micro_batch, micro_batch);
  }
  add_slots(run, works, step);
  return step;
}

}  // namespace penstock::run
