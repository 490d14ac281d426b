// SPDX-License-Identifier: Apache-2.0
// What a run keeps of its state while it trains: checkpoints on disk, copies in hosts' memory; and the time
// that this takes from training.
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
  using Facts = std::function<CheckpointFacts()>;  // of the step done, without files

  // `newest`: step of the newest checkpoint on disk; 0: none. Collective, as all calls but busy() and those
  // that tell.
  StateKeeper(const run::Run& run, CheckpointDirectory directory, std::int64_t newest, Trainer& trainer,
              const Facts& facts, comm::World world);

  bool copies() const { return copies_.has_value(); }
  void copy(std::int64_t step, const Facts& facts);  // after each step that may be gone on from
  void settle_copies();                              // after each of the others
  void save(const Facts& facts);
  bool busy() { return saver_.busy(); }
  void proceed();  // when no rank is busy
  void settle();
  // When the run has come to its end, or is to go on from its newest checkpoint. Also those of earlier
  // starts, and those on hosts that are absent: the run has no number until a start makes copies again.
  void forget_copies();

  std::int64_t newest() const { return saver_.newest(); }  // checkpoint
  std::string newest_checkpoint() const;                   // its directory; empty: none
  Bytes staging_bytes() const { return saver_.copy_bytes(); }
  Bytes copied_bytes() const { return copies_ ? copies_->touched() : 0; }
  Seconds take_held_up();  // since the last call

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
  std::int64_t superseded_ = 0;  // by the checkpoint of this step
  Seconds held_up_ = 0;
};

}  // namespace penstock::train
