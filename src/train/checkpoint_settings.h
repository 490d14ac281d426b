// SPDX-License-Identifier: Apache-2.0
// The settings that a run's numbers depend on, and what it means for a resumed run when they have changed.
//
// The state fits no other model, precision or order of samples: those changes are refused. Others (learning
// rate, slices, threads, batch, ...) may be wanted: the run goes on, but not with the bits of one that never
// stopped, and says so. Devices, schedules, transports, timeouts, evaluations and checkpoints change no bit.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint_facts.h"
#include "train/run_plan.h"

namespace penstock::train {

// `threads`: per rank.
Settings settings_of(const RunPlan& plan, int threads);

struct SettingChange {
  std::string name;
  std::string was, is;
  bool fits = true;  // the saved state can go on with it
};

// Settings that only one side knows are passed over.
std::vector<SettingChange> changes(const Settings& was, const Settings& is);

// The threads per rank that a checkpoint names; 0 when it does not.
int threads_of(const Settings& settings);

}  // namespace penstock::train
