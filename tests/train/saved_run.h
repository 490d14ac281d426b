// SPDX-License-Identifier: Apache-2.0
// Checkpoints of small runs on drawn tokens, for tests: saved and loaded as a run does it.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "train/checkpoint_directory.h"
#include "train/checkpoint_load.h"
#include "train/checkpoint_saver.h"
#include "train/checkpoint_settings.h"
#include "train/small_run.h"

namespace penstock::testing {

inline train::CheckpointFacts facts_of(const train::RunPlan& plan, std::int64_t step,
                                       train::Trainer& trainer) {
  return {.step = step,
          .samples_drawn = step * plan.options.train.batch,
          .samples_per_epoch = 100,
          .updates = trainer.optimizer().updates(),
          .settings = train::settings_of(plan, 1)};
}

inline train::CheckpointSaver saver_of(const train::RunPlan& plan, const std::string& directory,
                                       train::Trainer& trainer, comm::Communicator& world,
                                       std::int64_t keep = 2) {
  return {train::CheckpointDirectory(directory), keep, 0, plan.shape(), trainer, world};
}

inline void step_on_drawn_tokens(const train::RunPlan& plan, train::Trainer& trainer, std::int64_t step) {
  trainer.step(step, tokens_of(drawn_batches(plan, static_cast<std::uint64_t>(step))));
}

// Every master and moment, by name.
inline void collect_state(train::Trainer& trainer, std::map<std::string, at::Tensor>& state) {
  for (const train::Optimizer::Entry& entry : trainer.optimizer().entries()) {
    const std::string& name = entry.parameter->name;
    state[name] = entry.parameter->master.clone();
    state[name + " first"] = entry.first_moment.clone();
    state[name + " second"] = entry.second_moment.clone();
  }
}

// The state after the steps from `first` to `last`, begun from the checkpoint of the step before when a
// directory has it; a checkpoint of the last is left there.
inline std::map<std::string, at::Tensor> run_steps(const train::RunPlan& plan, const std::string& directory,
                                                   std::int64_t first, std::int64_t last) {
  std::map<std::string, at::Tensor> state;
  std::mutex mutex;
  on_ranks(plan, [&](comm::Communicator& world) {
    train::Trainer trainer(plan, world);
    const train::CheckpointDirectory checkpoints(directory);
    if (first > 1) {
      const auto facts = train::read_checkpoint_facts(checkpoints, first - 1);
      train::load_checkpoint(checkpoints.of_step(first - 1), facts, trainer);
    }
    for (std::int64_t step = first; step <= last; ++step) step_on_drawn_tokens(plan, trainer, step);
    auto saver = saver_of(plan, directory, trainer, world);
    saver.begin(facts_of(plan, last, trainer));
    saver.settle();
    const std::lock_guard lock(mutex);
    collect_state(trainer, state);
  });
  return state;
}

// Throws what a resumed run would pass the checkpoint over for.
inline void verify(const std::string& directory, std::int64_t step) {
  const train::CheckpointDirectory checkpoints(directory);
  const auto facts = train::read_checkpoint_facts(checkpoints, step);
  for (int share = 0; share < 3; ++share) {
    train::verify_checkpoint(checkpoints.of_step(step), facts, share, 3);
  }
}

}  // namespace penstock::testing
