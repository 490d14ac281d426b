// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/keeper.h"

#include <utility>

#include "base/clock.h"
#include "train/checkpoint/run_number.h"
#include "train/checkpoint/state_shares.h"

namespace penstock::train {

StateKeeper::StateKeeper(const run::Run& run, CheckpointDirectory directory, std::int64_t newest,
                         Trainer& trainer, const Facts& facts, comm::World world)
    : world_(world),
      output_(run.options.output.dir),
      directory_(directory),
      saver_(std::move(directory), run.options.train.keep_checkpoints, newest, run.shape(), trainer, world,
             run.options.output.gather ? Sharing::FirstRank : Sharing::AllRanks),
      memory_(copies_directory(run.options.train.buddy_dir, run.options.output.dir, world)),
      superseded_(newest) {
  if (run.options.train.buddy_every == 0) return;
  const std::vector<CheckpointFile> files = checkpoint_files(run.shape());
  const CheckpointFacts start = facts();
  // A start from a checkpoint leaves the copies of later steps behind, also those on hosts that are absent.
  const bool from_copies = start.step > newest;
  std::string number = from_copies ? run_number(output_, world) : std::string();
  if (number.empty()) number = renew_run_number(output_, world);
  HostCopies::Setting setting{memory_, run.options.train.buddy_every, std::move(number)};
  copies_.emplace(std::move(setting), files, shares_of_state(files, run.shape(), trainer), start, world);
}

template <class Work>
void StateKeeper::hold_up(Work&& work) {
  const Seconds began = steady_seconds();
  work();
  held_up_ += steady_seconds() - began;
}

void StateKeeper::copy(std::int64_t step, const Facts& facts) {
  if (copies_) hold_up([&] { copies_->after_step(step, facts); });
}

void StateKeeper::settle_copies() {
  if (copies_) hold_up([&] { copies_->settle(); });
}

void StateKeeper::save(const Facts& facts) {
  hold_up([&] { saver_.begin(facts()); });
}

void StateKeeper::proceed() {
  saver_.proceed();
  supersede_copies();
}

void StateKeeper::settle() {
  hold_up([&] { saver_.settle(); });
  settle_copies();
  supersede_copies();
}

// A start that makes no copies keeps those of earlier ones until it has a checkpoint: from then on they would
// lead back to steps that it has replaced.
void StateKeeper::supersede_copies() {
  if (copies_ || newest() <= superseded_) return;
  forget_copies();
  superseded_ = newest();
}

void StateKeeper::forget_copies() {
  copies_ ? copies_->remove() : clear_copies(memory_);
  if (world_->rank() == 0) forget_run_number(output_);
}

std::string StateKeeper::newest_checkpoint() const {
  return newest() > 0 ? directory_.of_step(newest()) : std::string();
}

Seconds StateKeeper::take_held_up() { return std::exchange(held_up_, 0); }

}  // namespace penstock::train
