// SPDX-License-Identifier: Apache-2.0
#include "train/kept_steps.h"

#include "train/record/gather_events.h"
#include "train/record/gather_lists.h"

namespace penstock::train {
namespace {

constexpr std::size_t kMost = 3;

}  // namespace

void KeptSteps::keep(std::int64_t step, const Trainer& trainer, bool documents) {
  steps_.push_back({step, trainer.events(), trainer.exchanges(), trainer.memory(),
                    trainer.processor_seconds(), trainer.kernel_calls()});
  if (steps_.size() > (documents ? 1 : kMost)) steps_.pop_front();
}

std::vector<run::StepTimeline> KeptSteps::timelines(Trainer& trainer, const run::Run& run,
                                                    comm::World world) const {
  const comm::Pipeline pipeline = trainer.pipeline();
  const schedule::Program& program = trainer.plan().program;
  std::vector<run::StepTimeline> timelines;
  for (const Step& step : steps_)
    timelines.push_back({step.number, gather_events(program, step.events, step.exchanges, pipeline),
                         gather_lists(step.memory, pipeline), gather_lists(step.processor_seconds, pipeline),
                         gather_rank_events(step.events, run.mesh, world)});
  return timelines;
}

std::vector<StepProfile> KeptSteps::profiles(Trainer& trainer) const {
  std::vector<StepProfile> profiles;
  for (const Step& step : steps_)
    profiles.push_back(gather_profile(step.number, step.calls, trainer.pipeline()));
  return profiles;
}

}  // namespace penstock::train
