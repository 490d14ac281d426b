// SPDX-License-Identifier: Apache-2.0
// This rank's records of the last steps, for the timelines that a run leaves.
#pragma once

#include <deque>
#include <vector>

#include "comm/groups.h"
#include "train/record/step_profile.h"
#include "train/record/step_timeline.h"
#include "train/step/trainer.h"

namespace penstock::train {

class KeptSteps {
 public:
  // After each step. Of steps with documents, each of another program, only the last is kept.
  void keep(std::int64_t step, const Trainer& trainer, bool documents);

  // On rank 0, of all ranks. Collective.
  std::vector<StepTimeline> timelines(Trainer& trainer, const run::Run& run, comm::World world) const;
  std::vector<StepProfile> profiles(Trainer& trainer) const;

 private:
  struct Step {
    std::int64_t number = 0;
    std::vector<schedule::Event> events;
    std::vector<schedule::ExchangeSpan> exchanges;
    std::vector<OpMemory> memory;
    std::vector<Seconds> processor_seconds;
    std::vector<nn::KernelCall> calls;
  };
  std::deque<Step> steps_;
};

}  // namespace penstock::train
