// SPDX-License-Identifier: Apache-2.0
#include "schedule/placement.h"

namespace penstock::schedule {

Placement::Placement(const Schedule& schedule)
    : devices_(schedule.device_count()),
      stages_(schedule.stages),
      micro_batches_(schedule.micro_batches()),
      device_of_(static_cast<std::size_t>(stages_) * static_cast<std::size_t>(micro_batches_), kNowhere) {
  for (int device = 0; device < schedule.device_count(); ++device) {
    for (const Action& action : schedule.devices[device]) {
      if (!is_compute(action.kind)) continue;
      if (action.key.stage < 0 || action.key.stage >= stages_) continue;
      if (action.key.micro_batch < 0 || action.key.micro_batch >= micro_batches_) continue;
      std::int32_t& home =
          device_of_[static_cast<std::size_t>(action.key.stage) * micro_batches_ + action.key.micro_batch];
      if (home == kNowhere) home = device;
    }
  }
  for (int stage = 0; stage < stages_; ++stage) {
    for (int j = 1; j < micro_batches_; ++j) has_replicas_ |= device_of(stage, j) != device_of(stage, 0);
  }
}

int Placement::device_of(int stage, int micro_batch) const {
  if (stage < 0 || stage >= stages_ || micro_batch < 0 || micro_batch >= micro_batches_) return kNowhere;
  return device_of_[static_cast<std::size_t>(stage) * micro_batches_ + micro_batch];
}

std::vector<int> Placement::stages_on(int device) const {
  std::vector<int> stages;
  for (int stage = 0; stage < stages_; ++stage) {
    bool here = false;
    for (int j = 0; j < micro_batches_ && !here; ++j) here = device_of(stage, j) == device;
    if (here) stages.push_back(stage);
  }
  return stages;
}

std::vector<std::vector<int>> Placement::replicated_stages() const {
  std::vector<std::vector<int>> stages;
  if (!has_replicas_) return stages;
  for (int device = 0; device < devices_; ++device) stages.push_back(stages_on(device));
  return stages;
}

}  // namespace penstock::schedule
