// SPDX-License-Identifier: Apache-2.0
// Checkpoints of small runs on drawn tokens, for tests: saved and loaded as a run does it.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "train/checkpoint/directory.h"
#include "train/checkpoint/load.h"
#include "train/checkpoint/saver.h"
#include "train/checkpoint/settings.h"
#include "train/small_run.h"

namespace penstock::testing {

// A run on this mesh whose replicas share their states as `shard` says.
inline run::Run sharded_plan(int devices, int tensor, int replicas, const char* shard) {
  auto options = small_options("slimpipe", devices, 4, "bf16");
  options.parallel.tp = tensor;
  options.numerics.tensor = 2;
  options.parallel.dp = replicas;
  options.numerics.replicas = 2;
  options.parallel.shard = shard;
  return planned(options);
}

inline train::CheckpointFacts facts_of(const run::Run& run, std::int64_t step, train::Trainer& trainer) {
  return {.step = step,
          .samples_drawn = step * run.options.train.batch,
          .samples_per_epoch = 100,
          .updates = trainer.optimizer().updates(),
          .settings = train::settings_of(run, 1)};
}

inline train::CheckpointSaver saver_of(const run::Run& run, const std::string& directory,
                                       train::Trainer& trainer, comm::Communicator& world,
                                       std::int64_t keep = 2,
                                       train::Sharing sharing = train::Sharing::AllRanks) {
  return {train::CheckpointDirectory(directory), keep, 0, run.shape(), trainer, world, sharing};
}

inline void step_on_drawn_tokens(const run::Run& run, train::Trainer& trainer, int rank, std::int64_t step) {
  trainer.step(step, tokens_of(run, rank, drawn_batches(run, static_cast<std::uint64_t>(step))));
}

// Every master and moment, by name.
inline void collect_state(train::Trainer& trainer, std::map<std::string, at::Tensor>& state) {
  for (const train::Optimizer::Entry& entry : trainer.optimizer().entries()) {
    const nn::Parameter& parameter = *entry.parameter;
    put(state, parameter.name, parameter, parameter.master);
    put(state, parameter.name + " first", parameter, entry.first_moment);
    put(state, parameter.name + " second", parameter, entry.second_moment);
  }
}

// The state after the steps from `first` to `last`, begun from the checkpoint of the step before when a
// directory has it; a checkpoint of the last is left there.
inline std::map<std::string, at::Tensor> run_steps(const run::Run& run, const std::string& directory,
                                                   std::int64_t first, std::int64_t last) {
  std::map<std::string, at::Tensor> state;
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    const train::CheckpointDirectory checkpoints(directory);
    if (first > 1) {
      const auto facts = train::read_checkpoint_facts(checkpoints, first - 1);
      train::load_checkpoint(checkpoints.of_step(first - 1), facts, trainer);
    }
    for (std::int64_t step = first; step <= last; ++step)
      step_on_drawn_tokens(run, trainer, world.rank(), step);
    auto saver = saver_of(run, directory, trainer, world);
    saver.begin(facts_of(run, last, trainer));
    saver.settle();
    const std::lock_guard lock(mutex);
    collect_state(trainer, state);
  });
  return state;
}

// The state of a checkpoint as this run's ranks load it.
inline std::map<std::string, at::Tensor> loaded(const run::Run& run, const std::string& directory,
                                                std::int64_t step) {
  std::map<std::string, at::Tensor> state;
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    const train::CheckpointDirectory checkpoints(directory);
    train::load_checkpoint(checkpoints.of_step(step), train::read_checkpoint_facts(checkpoints, step),
                           trainer);
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
