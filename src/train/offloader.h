// SPDX-License-Identifier: Apache-2.0
// Carries out the copies of one device's program: records leave for a store and come back, each way on a
// thread of its own beside computation.
//
// Memory follows the program's order alone. A record is freed where the first compute op waits for its
// OFFLOAD and has memory again where its RELOAD is issued, however quick the copies are; so the measured peak
// is the simulated one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "nn/parked_storage.h"
#include "nn/stage.h"
#include "schedule/program.h"
#include "schedule/timeline.h"
#include "train/copy_lane.h"
#include "train/offload_rooms.h"
#include "train/offload_store.h"

namespace penstock::train {

// What the copies of a step came to.
struct CopyFacts {
  Bytes bytes = 0;      // both ways
  Seconds copying = 0;  // of both lanes
  Seconds waiting = 0;  // of the compute thread, for copies alone
  Bytes away_peak = 0;  // in the store at most
};

// On the thread that computes.
class Offloader {
 public:
  // The list outlives this; the store holds find_rooms(list).size bytes.
  Offloader(const schedule::DeviceProgram& list, std::unique_ptr<OffloadStore> store);

  // Begins a step: times in events are since then.
  void begin(CopyLane::Clock::time_point began);

  // Carries out an OFFLOAD or a RELOAD, up to posting its copy.
  void offload(std::uint32_t op, const nn::Stage& stage, bool sliced);
  void reload(std::uint32_t op);

  // Before an op that waits for the copy: returns when it is done, with its event; nothing when that was told
  // before. A RELOAD's record may be used from then on. Throws RunError when a copy failed.
  std::optional<schedule::Event> finish(std::uint32_t op);

  // Throws RunError when a copy failed meanwhile.
  void throw_failure();

  // Of the step since begin(); every copy has been waited for.
  const CopyFacts& facts() const { return facts_; }

 private:
  using Key = std::tuple<int, int, int>;
  static Key key_of(const schedule::Op& op) { return {op.stage, op.micro_batch, op.slice}; }
  schedule::Event event_of(std::uint32_t op, const CopyLane::Times& times);

  const schedule::DeviceProgram& list_;
  OffloadRooms rooms_;
  std::unique_ptr<OffloadStore> store_;
  std::map<Key, std::vector<nn::ParkedStorage>> parked_;
  std::map<std::uint32_t, std::uint64_t> under_way_;  // copies posted and not waited for: their lane's number
  CopyLane::Clock::time_point began_;
  CopyFacts facts_;
  Bytes away_ = 0;
  CopyLane out_, in_;  // last: their jobs use what stands above
};

}  // namespace penstock::train
