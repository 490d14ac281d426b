// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/shard.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "schedule/passes/rewriter.h"

namespace penstock::schedule {
namespace {

bool has_visits(const DeviceProgram& device) {
  return std::ranges::any_of(device.ops, [](const Op& op) { return op.kind == OpKind::VocabularyLoss; });
}

class DeviceSync {
 public:
  DeviceSync(const Program& program, const DeviceProgram& source, const ReplicaSync& sync)
      : program_(program), source_(source), sync_(sync), rewriter_(source, 8), visits_(has_visits(source)) {
    for (std::uint32_t i = 0; i < source.ops.size(); ++i) foresee(i);
  }

  DeviceProgram finish() {
    if (sync_.sharding != ReplicaSharding::None) {
      if (visits_) gather(vocabulary_unit(program_));
      for (const int stage : stages_) {
        if (sync_.sharding == ReplicaSharding::Optimizer) gather(stage);
      }
    }
    for (std::uint32_t i = 0; i < source_.ops.size(); ++i) keep(i);
    reduce();
    while (!here_.empty()) release(here_.front());
    return rewriter_.take();
  }

 private:
  void foresee(std::uint32_t index) {
    const Op& op = source_.ops[index];
    const auto note = [&](int unit) {
      if (sync_.reduces && contributes(program_, op, unit)) last_of_[unit] = index;
    };
    if (visits_) note(vocabulary_unit(program_));
    if (!is_action(op.kind)) return;
    note(op.key.stage);
    if (std::ranges::find(stages_, op.key.stage) == stages_.end()) stages_.push_back(op.key.stage);
    if (series_.empty() || source_.ops[series_.back()].key.stage != op.key.stage) series_.push_back(index);
  }

  void keep(std::uint32_t index) {
    const Op& op = source_.ops[index];
    if (lane_of(op.kind) == Lane::Compute) reduce();
    std::vector<std::uint32_t> waits;
    if (is_action(op.kind) && sync_.sharding == ReplicaSharding::Weights) begin_series(index, waits);
    if (is_action(op.kind)) wait_for_gather(op.key.stage, op, waits);
    if (visits_ && uses_vocabulary(op)) wait_for_gather(vocabulary_unit(program_), op, waits);
    const std::uint32_t kept = rewriter_.keep_next(waits);
    if (is_action(op.kind)) last_use_[op.key.stage] = kept;
    for (const auto& [unit, last] : last_of_) {
      if (last == index) ended_.push_back(unit);
    }
  }

  // Gathers the stages of this series and of the next, unless they are gathered already.
  void begin_series(std::uint32_t index, std::vector<std::uint32_t>& waits) {
    const int stage = source_.ops[index].key.stage;
    if (contributes(program_, source_.ops[index], stage) && begun_.insert(stage).second && !reduced_.empty())
      waits.insert(waits.end(), reduced_.begin(), reduced_.end() - 1);
    if (next_series_ == series_.size() || series_[next_series_] != index) return;
    ++next_series_;
    fetch(stage, stage);
    if (next_series_ < series_.size()) fetch(source_.ops[series_[next_series_]].key.stage, stage);
  }

  void fetch(int stage, int current) {
    if (std::ranges::find(here_, stage) != here_.end()) return;
    if (here_.size() == 2) release(here_.front() == current ? here_.back() : here_.front());
    here_.push_back(stage);
    gather(stage);
  }

  void gather(int unit) {
    awaited_.erase(unit);
    gather_of_[unit] = insert(OpKind::GatherWeights, unit, sync_.weight_bytes, {});
  }

  void release(int stage) {
    std::erase(here_, stage);
    const auto used = last_use_.find(stage);
    insert(OpKind::ReleaseWeights, stage, {}, {used->second});
  }

  // Adds the wait once per lane, since lanes overtake each other.
  void wait_for_gather(int unit, const Op& op, std::vector<std::uint32_t>& waits) {
    const auto gathered = gather_of_.find(unit);
    if (gathered != gather_of_.end() && awaited_[unit].insert(lane_of(op.kind)).second)
      waits.push_back(gathered->second);
  }

  void reduce() {
    for (const int unit : ended_) {
      const std::uint32_t last = rewriter_.moved_to(last_of_.at(unit));
      reduced_.push_back(insert(OpKind::ReduceGradients, unit, sync_.gradient_bytes, {last}));
    }
    ended_.clear();
  }

  std::uint32_t insert(OpKind kind, int unit, const std::function<Bytes(int)>& bytes,
                       const std::vector<std::uint32_t>& waits) {
    const Op op{.key = {.stage = unit},
                .kind = kind,
                .group = mesh::Group::Replica,
                .bytes = bytes ? bytes(unit) : 0};
    return rewriter_.insert(op, waits);
  }

  const Program& program_;
  const DeviceProgram& source_;
  const ReplicaSync& sync_;
  Rewriter rewriter_;
  const bool visits_;                       // the device has LOSS ops
  std::vector<int> stages_;                 // in order of first use
  std::vector<std::uint32_t> series_;       // first op of each series, in the source
  std::size_t next_series_ = 0;             // first one that has not begun
  std::map<int, std::uint32_t> last_of_;    // [unit] last op that contributes, in the source
  std::map<int, std::uint32_t> gather_of_;  // [unit] latest GATHER_WEIGHTS, in the result
  std::map<int, std::uint32_t> last_use_;   // [stage] latest action, in the result
  std::map<int, std::set<Lane>> awaited_;   // [unit] lanes that have waited for its latest gather
  std::vector<int> here_;                   // gathered stages, oldest first
  std::set<int> begun_;                     // stages with contributions so far
  std::vector<int> ended_;                  // complete units whose REDUCE_GRAD is not issued yet
  std::vector<std::uint32_t> reduced_;      // REDUCE_GRADs, in the result
};

}  // namespace

Program add_replica_sync(const Program& program, const ReplicaSync& sync) {
  if (!sync.gradient_bytes) return program;
  Program result{program.name, program.stages, program.slices, {}};
  for (const DeviceProgram& device : program.devices)
    result.devices.push_back(DeviceSync(program, device, sync).finish());
  return result;
}

}  // namespace penstock::schedule
