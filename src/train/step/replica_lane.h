// SPDX-License-Identifier: Apache-2.0
// Collectives of one rank with its replicas (docs/mesh.md, "Replicas"): gradients are summed and weights
// gathered piece by piece while the rank computes. Ops run one after another, in the order in which they
// start: dense weights among their replicas, then experts among theirs.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/clock.h"
#include "comm/groups.h"
#include "comm/share_lane.h"
#include "run/run.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/step/gradient_buffers.h"
#include "train/step/units.h"

namespace penstock::train {

// On a GPU, times are on the rank's stream: a collective lasts from when its data is ready there to when its
// result is.
struct CollectiveFacts {
  Seconds busy = 0;     // of this rank's collectives
  Seconds waiting = 0;  // of its compute thread, for collectives only
};

class ReplicaLane {
 public:
  // The arguments must outlive the lane. The groups have several replicas of dense weights or experts.
  ReplicaLane(const run::Run& run, const comm::Groups& groups, Units& units, GradientBuffers& gradients);

  void begin();  // call before each step

  // Starts GATHER_WEIGHTS or REDUCE_GRAD over the replicas, op `index` of the list. Allocates a sharded
  // unit's weights; finish() drops its full gradients.
  void start(std::uint32_t index, const schedule::Op& op);
  // Frees a sharded unit's weights.
  void release(const schedule::Op& op);

  // Makes progress without waiting; returns true if anything moved.
  bool advance() { return lane_.advance(); }

  // Waits for all ops up to this index while running `meanwhile`.
  void finish(std::uint32_t index, const std::function<bool()>& meanwhile);

  // Ends a step, whose ops are all finished: reports the event of each that moved data, in `clock` seconds.
  using Note = std::function<void(std::uint32_t op, const schedule::Event& event)>;
  void report(const backend::DeviceClock& clock, const Note& note);

  // Call when the masters have changed: weights gathered before are out of date.
  void forget_weights() { gathered_.clear(); }

  CollectiveFacts facts() const { return facts_; }  // of the last reported step

 private:
  struct Flight {
    schedule::Op op;
    std::uint32_t index = 0;
    comm::ShareLane::Ticket first = 0, last = -1;  // none: last < first

    bool moves() const { return first <= last; }
    void add(comm::ShareLane::Ticket ticket) {
      if (!moves()) first = ticket;
      last = ticket;
    }
  };

  struct Span {
    backend::Moment start, end;
  };

  // Parameters with the same replica groups; null if only this rank has them.
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

  const run::Run& run_;
  Units& units_;
  GradientBuffers& gradients_;
  std::array<Family, 2> families_;
  at::Tensor room_;
  std::map<comm::ShareLane::Ticket, Span> spans_;  // of this step's operations, not reported yet
  std::vector<Span> waits_;                        // the same for finish()
  comm::ShareLane lane_;
  std::deque<Flight> flights_, finished_;
  std::map<int, bool> gathered_;  // units whose weights are up to date
  CollectiveFacts facts_;
};

}  // namespace penstock::train
