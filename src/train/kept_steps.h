// SPDX-License-Identifier: Apache-2.0
// This rank's records of the last few steps, for the timelines that a run writes.
#pragma once

#include <deque>
#include <vector>

#include "comm/groups.h"
#include "run/record/step_timeline.h"
#include "train/record/step_profile.h"
#include "train/step/trainer.h"

namespace penstock::train {

class KeptSteps {
 public:
  // Call after each step. With `documents`, every step has its own program, so only the last step is kept.
  void keep(std::int64_t step, const Trainer& trainer, bool documents);

  // Gather all ranks' records on rank 0. Collective.
  std::vector<run::StepTimeline> timelines(Trainer& trainer, const run::Run& run, comm::World world) const;
  std::vector<StepProfile> profiles(Trainer& trainer) const;

 private:
  struct Step {
    std::int64_t number = 0;
    std::vector<schedule::Event> events;
    std::vector<schedule::ExchangeSpan> exchanges;
    std::vector<run::OpMemory> memory;
    std::vector<Seconds> processor_seconds;
    std::vector<nn::KernelCall> calls;
  };
  std::deque<Step> steps_;
};

}  // namespace penstock::train
