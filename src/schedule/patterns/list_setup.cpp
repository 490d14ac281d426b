// SPDX-License-Identifier: Apache-2.0
// Setup of the list scheduler: times in ticks, connections of the stages, and lower bounds.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "schedule/patterns/list_scheduler.h"

namespace penstock::schedule {
namespace {

// Upper bound of the makespan for every rule: devices wait only while an action or a transfer is running.
Seconds longest(const ListProblem& problem) {
  Seconds sum = 0;
  for (std::size_t stage = 0; stage < problem.home.size(); ++stage) {
    sum += problem.forward[stage] + problem.input[stage] + problem.weight[stage] + 2 * problem.transfer;
  }
  return sum * problem.micro_batches;
}

}  // namespace

ListScheduler::ListScheduler(const ListProblem& problem)
    : micro_batches_(problem.micro_batches),
      chunks_(static_cast<int>(problem.home.size()) / problem.devices),
      limit_(problem.limit),
      fresh_(problem.devices),
      earliest_(problem.devices) {
  const Seconds most = longest(problem);
  if (!std::isfinite(most)) throw InputError("the times add up to more seconds than a number can hold");
  constexpr int kMostExponent = 1000;  // bounds the scale for tiny times
  const int bits = Earliest::bits_of_time(problem.devices) - 1;
  ticks_per_second_ = std::ldexp(1.0, most > 0 ? std::min(bits - std::ilogb(most) - 1, kMostExponent) : 0);
  connect(problem);
  bound(problem);
}

Ticks ListScheduler::in_ticks(Seconds seconds) const {
  return static_cast<Ticks>(std::llround(seconds * ticks_per_second_));
}

void ListScheduler::connect(const ListProblem& problem) {
  const int stages = static_cast<int>(problem.home.size());
  const std::size_t queue = micro_batches_ + std::size_t{1};  // the last entry stays kNever
  ready_.resize((2 * stages + 1) * queue);
  const auto queue_of = [&](int stage, Step::Kind kind) { return &ready_[(2 * stage + kind) * queue]; };
  std::vector<int> place(stages), count(problem.devices);
  for (int stage = 0; stage < stages; ++stage) place[stage] = count[problem.home[stage]]++;
  for (Device& device : fresh_) {
    for (Chunk& chunk : device.chunks) chunk.ready[0] = chunk.ready[1] = &ready_[2 * stages * queue];
    for (auto& heads : device.heads) heads[0] = heads[1] = kNever;
  }
  const Ticks transfer = in_ticks(problem.transfer);
  const auto way_to = [&](int from, int stage, Step::Kind kind) -> Way {
    const int to = problem.home[stage];
    return {queue_of(stage, kind), to, place[stage], kind, to == problem.home[from] ? 0 : transfer};
  };
  for (int stage = 0; stage < stages; ++stage) {
    Chunk& chunk = fresh_[problem.home[stage]].chunks[place[stage]];
    chunk.seconds[Step::Forward] = in_ticks(problem.forward[stage]);
    chunk.seconds[Step::Input] = in_ticks(problem.input[stage]);
    const Ticks weight = chunk.seconds[Step::Weight] = in_ticks(problem.weight[stage]);
    for (int k = 0; k < kOverrunCount; ++k) {
      chunk.thresholds[k] =
          weight - static_cast<Ticks>(std::llround(static_cast<double>(weight) * kOverruns[k]));
    }
    chunk.record = problem.record[stage];
    for (const auto kind : {Step::Forward, Step::Input}) chunk.ready[kind] = queue_of(stage, kind);
    chunk.way[Step::Forward] =
        stage + 1 < stages ? way_to(stage, stage + 1, Step::Forward) : way_to(stage, stage, Step::Input);
    // The output of the first stage's I has no consumer: it overwrites the arrival time of F's input.
    chunk.way[Step::Input] =
        stage > 0 ? way_to(stage, stage - 1, Step::Input) : way_to(stage, stage, Step::Forward);
  }
  devices_ = fresh_;
}

// Lower bound of the makespan of every schedule: a device begins when the first micro-batch reaches it, and
// after its last I the earlier stages still have to run theirs.
void ListScheduler::bound(const ListProblem& problem) {
  const Ticks transfer = in_ticks(problem.transfer);
  const auto m = static_cast<Ticks>(micro_batches_);
  Ticks head = 0, tail = 0;
  std::vector<bool> known(problem.devices);
  for (std::size_t stage = 0; stage < problem.home.size(); ++stage) {
    Device& device = fresh_[problem.home[stage]];
    if (known[problem.home[stage]]) continue;
    known[problem.home[stage]] = true;
    for (const Chunk& chunk : device.chunks) {
      device.chain += m * (chunk.seconds[Step::Forward] + chunk.seconds[Step::Input]);
      device.work += m * chunk.seconds[Step::Weight];
    }
    device.work += device.chain;
    if (stage == 0) tail = device.chunks[0].seconds[Step::Weight];
    device.tail = tail;
    least_makespan_ = std::max(least_makespan_, head + std::max(device.work, device.chain + tail));
    head += device.chunks[0].seconds[Step::Forward] + transfer;
    tail += device.chunks[0].seconds[Step::Input] + transfer;
  }
}

}  // namespace penstock::schedule
