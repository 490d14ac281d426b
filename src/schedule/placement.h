// SPDX-License-Identifier: Apache-2.0
// The device of each (stage, micro-batch). It follows from a schedule's rows, so V shapes need no extra
// field; DualPipe has each stage on two devices, for different micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule {

class Placement {
 public:
  static constexpr int kNowhere = -1;

  // Uses the first action found of each (stage, micro-batch). A legal schedule has one device for each.
  explicit Placement(const Schedule& schedule);

  // Returns kNowhere if the pair has no action or a number is out of range.
  int device_of(int stage, int micro_batch) const;

  // The stages with at least one action on the device, ascending.
  std::vector<int> stages_on(int device) const;

  // stages_on() of every device if the schedule has replicas; else empty, since device_of() is enough.
  std::vector<std::vector<int>> replicated_stages() const;

  // True if a stage runs on more than one device, so that its parameters exist twice (DualPipe).
  bool has_replicas() const { return has_replicas_; }

 private:
  int devices_ = 0;
  int stages_ = 0;
  int micro_batches_ = 0;
  bool has_replicas_ = false;
  std::vector<std::int32_t> device_of_;  // [stage * micro_batches + micro_batch]
};

}  // namespace penstock::schedule
