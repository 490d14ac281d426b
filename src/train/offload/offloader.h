// SPDX-License-Identifier: Apache-2.0
// Runs the copies of one device's program: records move to a store and back, each direction on its own
// lane (backend/copy_lane.h), in parallel with computation.
//
// Memory depends only on the program's order, not on the speed of copies: a record is freed when the first
// compute op waits for its OFFLOAD and allocated again when its RELOAD is issued. So the measured peak equals
// the simulated one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/clock.h"
#include "backend/copy_lane.h"
#include "backend/parked_storage.h"
#include "nn/stage.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/offload/rooms.h"
#include "train/offload/store.h"

namespace penstock::train {

// Totals of a step's copies.
struct CopyFacts {
  Bytes bytes = 0;      // both directions
  Seconds copying = 0;  // of both lanes
  Seconds waiting = 0;  // of the compute thread, for copies only
  Bytes away_peak = 0;  // peak in the store
};

// Used on the compute thread.
class Offloader {
 public:
  // Both must outlive this; the store must hold find_rooms(list).size bytes.
  Offloader(const schedule::DeviceProgram& list, OffloadStore& store);

  // Begins a step.
  void begin() { facts_ = {}; }

  // Runs an OFFLOAD or a RELOAD up to posting its copy.
  void offload(std::uint32_t op, const nn::Stage& stage, bool sliced);
  void reload(std::uint32_t op);

  // Call before each op that waits for the copy: orders this thread's later work after it. A RELOAD's record
  // is then usable. Throws RunError if a copy failed.
  void finish(std::uint32_t op);

  // Throws RunError when a copy has failed.
  void throw_failure();

  // Ends a step, whose copies have all been waited for: reports each one's event, in seconds of `clock`.
  using Note = std::function<void(std::uint32_t op, const schedule::Event& event)>;
  void report(const backend::DeviceClock& clock, const Note& note);

  // Facts of the last reported step.
  const CopyFacts& facts() const { return facts_; }

 private:
  struct Finished {
    std::uint32_t op = 0;
    backend::CopyLane::Times times;
    backend::Moment asked, ready;  // on the compute stream
  };

  const schedule::DeviceProgram& list_;
  OffloadRooms rooms_;
  OffloadStore& store_;
  std::map<schedule::Key, std::vector<backend::ParkedStorage>> parked_;
  std::map<std::uint32_t, std::uint64_t> under_way_;  // job numbers of copies not yet waited for
  std::vector<Finished> finished_;                    // of this step, not reported yet
  CopyFacts facts_;
  Bytes away_ = 0;
  backend::CopyLane out_, in_;  // last: their jobs use the members above
};

}  // namespace penstock::train
