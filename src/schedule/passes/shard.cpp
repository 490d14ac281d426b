// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/shard.h"

#include <algorithm>
#include <map>
#include <vector>

#include "schedule/passes/rewriter.h"

namespace penstock::schedule {
namespace {

Op over_replicas(OpKind kind, int stage, const std::function<Bytes(int)>& bytes) {
  return {.key = {.stage = stage},
          .kind = kind,
          .group = mesh::Group::Replica,
          .bytes = bytes ? bytes(stage) : 0};
}

class DeviceSync {
 public:
  DeviceSync(const DeviceProgram& source, const ReplicaSync& sync)
      : source_(source), sync_(sync), rewriter_(source, 8) {
    for (std::uint32_t i = 0; i < source.ops.size(); ++i) {
      if (adds_weight_gradients(source.ops[i].kind)) last_of_[source.ops[i].key.stage] = i;
    }
  }

  DeviceProgram finish() {
    if (sync_.sharded) gather();
    for (std::uint32_t i = 0; i < source_.ops.size(); ++i) {
      const Op& op = source_.ops[i];
      if (lane_of(op.kind) == Lane::Compute) reduce();
      const auto gathered = op.kind == OpKind::Forward ? gather_of_.find(op.key.stage) : gather_of_.end();
      if (gathered == gather_of_.end()) {
        rewriter_.keep_next();
      } else {
        rewriter_.keep_next({&gathered->second, 1});
        gather_of_.erase(gathered);
      }
      if (adds_weight_gradients(op.kind) && last_of_.at(op.key.stage) == i) ended_.push_back(i);
    }
    reduce();
    return rewriter_.take();
  }

 private:
  void gather() {
    for (const Op& op : source_.ops) {
      const int stage = op.key.stage;
      if (op.kind != OpKind::Forward || gather_of_.contains(stage)) continue;
      gather_of_[stage] = rewriter_.insert(over_replicas(OpKind::GatherWeights, stage, sync_.weight_bytes));
    }
  }

  void reduce() {
    for (const std::uint32_t last : ended_) {
      const std::uint32_t wait = rewriter_.moved_to(last);
      const int stage = source_.ops[last].key.stage;
      rewriter_.insert(over_replicas(OpKind::ReduceGradients, stage, sync_.gradient_bytes), {&wait, 1});
    }
    ended_.clear();
  }

  const DeviceProgram& source_;
  const ReplicaSync& sync_;
  Rewriter rewriter_;
  std::map<int, std::uint32_t> last_of_;    // [stage] its last B or W, in the source
  std::map<int, std::uint32_t> gather_of_;  // [stage] not waited for yet, in the result
  std::vector<std::uint32_t> ended_;        // last B or W, in the source, whose REDUCE_GRAD is not issued
};

}  // namespace

Program add_replica_sync(const Program& program, const ReplicaSync& sync) {
  if (!sync.gradient_bytes) return program;
  Program result{program.name, program.stages, program.slices, {}};
  for (const DeviceProgram& device : program.devices)
    result.devices.push_back(DeviceSync(device, sync).finish());
  return result;
}

}  // namespace penstock::schedule
