// SPDX-License-Identifier: Apache-2.0
// Saves a run's state while it trains, as checkpoints on disk and copies in host memory, and measures the
// time that this takes from training.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "run/run.h"
#include "train/checkpoint/host_copies.h"
#include "train/checkpoint/saver.h"

namespace penstock::train {

class StateKeeper {
 public:
  using Facts = std::function<CheckpointFacts()>;  // of the last completed step, without files

  // `newest`: step of the newest checkpoint on disk; 0: none. All calls but busy() and the getters are
  // collective.
  StateKeeper(const run::Run& run, CheckpointDirectory directory, std::int64_t newest, Trainer& trainer,
              const Facts& facts, comm::World world);

  bool copies() const { return copies_.has_value(); }
  void copy(std::int64_t step, const Facts& facts);  // after each step that a run may resume from
  void settle_copies();                              // after each other step
  void save(const Facts& facts);
  bool busy() { return saver_.busy(); }
  void proceed();  // call when no rank is busy
  void settle();
  // Call when the run ends or must resume from its newest checkpoint. Drops all copies, also of earlier
  // starts. Copies on absent hosts become invalid, as the run has no number until a start makes copies again.
  void forget_copies();

  std::int64_t newest() const { return saver_.newest(); }  // step of the newest checkpoint
  std::string newest_checkpoint() const;                   // its directory; empty: none
  Bytes staging_bytes() const { return saver_.copy_bytes(); }
  Bytes copied_bytes() const { return copies_ ? copies_->touched() : 0; }
  Seconds take_held_up();  // lost since the last call

 private:
  template <class Work>
  void hold_up(Work&& work);
  void supersede_copies();

  comm::World world_;
  std::string output_;  // the run's directory, as rank 0 sees it
  CheckpointDirectory directory_;
  CheckpointSaver saver_;
  std::string memory_;  // the directory of copies in each host's memory
  std::optional<HostCopies> copies_;
  std::int64_t superseded_ = 0;  // step of the checkpoint that superseded the copies
  Seconds held_up_ = 0;
};

}  // namespace penstock::train
