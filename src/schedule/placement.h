// SPDX-License-Identifier: Apache-2.0
// Where each (stage, micro-batch) lives. It follows from a schedule's rows, so V shapes need no extra field;
// DualPipe has a stage on two devices, for different micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule {

class Placement {
 public:
  static constexpr int kNowhere = -1;

  // The device of the first action found of each (stage, micro-batch). Legal schedules have just one.
  explicit Placement(const Schedule& schedule);

  // kNowhere when no action of the pair exists or a number is out of range.
  int device_of(int stage, int micro_batch) const;

  // Stages with at least one action on the device, ascending.
  std::vector<int> stages_on(int device) const;

  // stages_on() of every device, where stages run on several; else empty, since device_of() says it.
  std::vector<std::vector<int>> replicated_stages() const;

  // A stage runs on more than one device, so its parameters exist twice (DualPipe).
  bool has_replicas() const { return has_replicas_; }

 private:
  int devices_ = 0;
  int stages_ = 0;
  int micro_batches_ = 0;
  bool has_replicas_ = false;
  std::vector<std::int32_t> device_of_;  // [stage * micro_batches + micro_batch]
};

}  // namespace penstock::schedule
