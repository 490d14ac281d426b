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

#include "backend/clock.h"
#include "comm/groups.h"
#include "comm/share_lane.h"
#include "run/run.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/step/gradient_buffers.h"
#include "train/step/units.h"

namespace penstock::train {

// On a card by the rank's stream: a collective is under way from where its data is ready there to where its
// result is.
struct CollectiveFacts {
  Seconds busy = 0;     // of this rank's collectives
  Seconds waiting = 0;  // of its computing thread, for them alone
};

class ReplicaLane {
 public:
  // All arguments outlive the lane; the groups have several replicas, of dense weights or of experts.
  ReplicaLane(const run::Run& run, const comm::Groups& groups, Units& units, GradientBuffers& gradients);

  void begin();  // a step

  // GATHER_WEIGHTS or REDUCE_GRAD over the replicas, op `index` of the list. A passing unit's weights get
  // their memory here, its gradients lose theirs in finish().
  void start(std::uint32_t index, const schedule::Op& op);
  // A passing unit's weights.
  void release(const schedule::Op& op);

  // Moves what can be moved, without waiting; true if anything was.
  bool advance() { return lane_.advance(); }

  // Waits for all ops up to this index while running `meanwhile`.
  void finish(std::uint32_t index, const std::function<bool()>& meanwhile);

  // Ends a step, all of whose ops are finished: the event of each that moved anything, by the clock.
  using Note = std::function<void(std::uint32_t op, const schedule::Event& event)>;
  void report(const backend::DeviceClock& clock, const Note& note);

  // The masters have changed: weights that were gathered before are out of date.
  void forget_weights() { gathered_.clear(); }

  CollectiveFacts facts() const { return facts_; }  // of the step reported last

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

  const run::Run& run_;
  Units& units_;
  GradientBuffers& gradients_;
  std::array<Family, 2> families_;
  at::Tensor room_;
  std::map<comm::ShareLane::Ticket, Span> spans_;  // of the step's operations, not reported yet
  std::vector<Span> waits_;                        // the same of finish()
  comm::ShareLane lane_;
  std::deque<Flight> flights_, finished_;
  std::map<int, bool> gathered_;  // units whose weights are up to date
  CollectiveFacts facts_;
};

}  // namespace penstock::train
