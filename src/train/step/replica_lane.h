// SPDX-License-Identifier: Apache-2.0
// The collectives of one rank with its replicas (docs/mesh.md, "Replicas"): gradients are summed and weights
// gathered piece by piece while the rank computes. Ops are carried out one after the other, in the order in
// which they start: dense weights among their replicas, then experts among theirs.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/groups.h"
#include "comm/share_lane.h"
#include "run/run.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/step/gradient_buffers.h"
#include "train/step/units.h"

namespace penstock::train {

struct CollectiveFacts {
  Seconds busy = 0;     // of this rank's collectives
  Seconds waiting = 0;  // of its computing thread, for them alone
};

class ReplicaLane {
 public:
  // All arguments outlive the lane; the groups have several replicas, of dense weights or of experts.
  ReplicaLane(const run::Run& run, const comm::Groups& groups, Units& units, GradientBuffers& gradients);

  // Event times count from `began` (clock.h).
  void begin(Seconds began);

  // GATHER_WEIGHTS or REDUCE_GRAD over the replicas, op `index` of the list. A passing unit's weights get
  // their memory here, its gradients lose theirs in finish().
  void start(std::uint32_t index, const schedule::Op& op);
  // A passing unit's weights.
  void release(const schedule::Op& op);

  // Moves what can be moved, without waiting; true if anything was.
  bool advance() { return lane_.advance(); }

  // Waits for all ops up to this index while running `meanwhile`; reports the event of each.
  using Report = std::function<void(std::uint32_t op, const schedule::Event&)>;
  void finish(std::uint32_t index, const std::function<bool()>& meanwhile, const Report& report);

  // The masters have changed: weights that were gathered before are out of date.
  void forget_weights() { gathered_.clear(); }

  CollectiveFacts facts() const { return facts_; }  // since begin()

 private:
  struct Flight {
    schedule::Op op;
    std::uint32_t index = 0;
    comm::ShareLane::Ticket first = 0, last = -1;  // none: last < first

    void add(comm::ShareLane::Ticket ticket) {
      if (last < first) first = ticket;
      last = ticket;
    }
  };

  // Parameters that the same ranks have; no groups where this rank alone has them.
  struct Family {
    bool experts = false;
    const comm::ReplicaGroups* groups = nullptr;

    bool has(const nn::Parameter& parameter) const;
  };

  void reduce(Flight& flight);
  void reduce(Flight& flight, const Family& family);
  void gather(Flight& flight);
  void gather(Flight& flight, const Family& family);
  void restore(Unit& unit) const;
  void end(const Flight& flight, const Report& report);

  const run::Run& run_;
  Units& units_;
  GradientBuffers& gradients_;
  std::array<Family, 2> families_;
  at::Tensor room_;
  comm::ShareLane lane_;
  std::deque<Flight> flights_;
  std::map<int, bool> gathered_;  // units whose weights are up to date
  Seconds began_ = 0;
  CollectiveFacts facts_;
};

}  // namespace penstock::train
