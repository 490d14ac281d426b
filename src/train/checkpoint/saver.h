// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints while training continues. A step waits only while the weights and moments that this rank
// owns are copied to a staging buffer, allocated once; a thread of each rank writes them from there into
// files of whole tensors. When all threads are done, a thread of rank 0 writes checkpoint.json, renames the
// checkpoint to its final name and removes old ones. So the name appears only when everything is on disk, and
// old checkpoints stay until then.
//
// Without a common file system (Sharing::FirstRank) a step waits until rank 0 has written all ranks' bytes.
//
// Only the rank's own thread exchanges messages. All calls but busy() and the getters are collective.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/file_share.h"
#include "train/checkpoint/layout.h"
#include "train/step/trainer.h"

namespace penstock::train {

// Who sees the directory of checkpoints.
enum class Sharing : std::uint8_t { AllRanks, FirstRank };

class CheckpointSaver {
 public:
  // The arguments must outlive the saver. `keep`: number of newest checkpoints to keep. `newest`: step of the
  // newest checkpoint on disk; 0: none.
  CheckpointSaver(CheckpointDirectory directory, std::int64_t keep, std::int64_t newest,
                  const model::Shape& shape, Trainer& trainer, comm::World world,
                  Sharing sharing = Sharing::AllRanks);

  // Abandons a save in progress.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Waits for an unfinished save, then starts to save the trainer's current state. `facts` lack the
  // checksums.
  void begin(CheckpointFacts facts);

  // Whether this rank's background work is running. Rethrows the RunError that ended it, with path and bytes
  // requested.
  bool busy();

  // Call periodically, when no rank is busy.
  void proceed();

  // Waits until no save is in progress.
  void settle();

  // Bytes of the staging buffer, allocated by the first save; 0 before. Not counted in the ledger.
  Bytes copy_bytes() const { return copy_bytes_; }

  // The step of the newest complete checkpoint; 0: none. The same on all ranks after settle().
  std::int64_t newest() const { return newest_; }

 private:
  enum class Phase : std::uint8_t { Idle, Writing, Finishing };

  void place_copies();
  void copy_state();
  void make_folder(std::int64_t step);
  void write_files(std::int64_t step);
  void write_gathered_files(std::int64_t step);
  bool awaits_the_cause() const;
  void gather_sums();
  void finish();

  CheckpointDirectory directory_;
  std::int64_t keep_;
  std::int64_t newest_;
  comm::World world_;
  const Sharing sharing_;
  std::vector<CheckpointFile> files_;
  std::vector<FileShare> live_;                   // one per file: the live tensors
  std::vector<FileShare> copies_;                 // the same in the staging buffer, once allocated
  std::vector<std::vector<std::uint64_t>> sums_;  // [file][tensor] of this rank's share
  std::unique_ptr<std::byte[]> staging_;
  Bytes copy_bytes_ = 0;
  CheckpointFacts facts_;
  Phase phase_ = Phase::Idle;
  std::atomic<bool> given_up_ = false;
  std::future<void> work_;
  std::exception_ptr consequence_;  // probably due to another rank's failure
  Seconds consequence_since_ = 0;
};

}  // namespace penstock::train
