// SPDX-License-Identifier: Apache-2.0
// Runs the copies of one device's program: records move to a store and back, each direction on its own
// thread, in parallel with computation.
//
// Memory depends on the program's order alone, not on the speed of copies: a record is freed where the first
// compute op waits for its OFFLOAD and allocated again where its RELOAD is issued. So the measured peak
// equals the simulated one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "nn/memory/parked_storage.h"
#include "nn/stage.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/offload/copy_lane.h"
#include "train/offload/rooms.h"
#include "train/offload/store.h"

namespace penstock::train {

// Totals of a step's copies.
struct CopyFacts {
  Bytes bytes = 0;      // both directions
  Seconds copying = 0;  // of both lanes
  Seconds waiting = 0;  // of the compute thread, for copies alone
  Bytes away_peak = 0;  // peak in the store
};

// On the thread that computes.
class Offloader {
 public:
  // The list must outlive this; the store holds find_rooms(list).size bytes.
  Offloader(const schedule::DeviceProgram& list, std::unique_ptr<OffloadStore> store);

  // Begins a step: times in events count from `began`, a reading of steady_seconds().
  void begin(Seconds began);

  // Runs an OFFLOAD or a RELOAD up to posting its copy.
  void offload(std::uint32_t op, const nn::Stage& stage, bool sliced);
  void reload(std::uint32_t op);

  // Call before an op that waits for the copy. Blocks until it is done; returns its event, or nothing if
  // returned before. A RELOAD's record is then usable. Throws RunError when a copy failed.
  std::optional<schedule::Event> finish(std::uint32_t op);

  // Throws RunError when a copy has failed.
  void throw_failure();

  // Of the step since begin(); every copy has been waited for.
  const CopyFacts& facts() const { return facts_; }

 private:
  using Key = std::tuple<int, int, int>;
  static Key key_of(const schedule::Op& op) { return {op.key.stage, op.key.micro_batch, op.key.slice}; }
  schedule::Event event_of(const CopyLane::Times& times);

  const schedule::DeviceProgram& list_;
  OffloadRooms rooms_;
  std::unique_ptr<OffloadStore> store_;
  std::map<schedule::Key, std::vector<nn::ParkedStorage>> parked_;
  std::map<std::uint32_t, std::uint64_t> under_way_;  // job numbers of copies not yet waited for
  Seconds began_ = 0;
  CopyFacts facts_;
  Bytes away_ = 0;
  CopyLane out_, in_;  // last: their jobs use the members above
};

}  // namespace penstock::train
