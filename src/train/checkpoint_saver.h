// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints beside the steps: a step is held for the copy of this rank's weights and moments, made
// in one staging buffer that is allocated once; a thread of each rank writes its files from there. When all
// have, a thread of rank 0 writes what the checkpoint says of itself, gives it its name and removes old ones.
// So it has its name only when all of it is on the disk, and the old ones stay until then.
//
// No thread but the rank's own exchanges messages. All calls but busy() are collective.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "files/safetensors.h"
#include "train/checkpoint_directory.h"
#include "train/checkpoint_layout.h"
#include "train/trainer.h"

namespace penstock::train {

class CheckpointSaver {
 public:
  // Everything given outlives the saver. `keep`: so many of the newest checkpoints stay. `newest`: the step
  // of the one that the run went on from; 0: none.
  CheckpointSaver(CheckpointDirectory directory, std::int64_t keep, std::int64_t newest,
                  const model::Shape& shape, Trainer& trainer, comm::Communicator& pipeline);

  // Gives up what is under way.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Begins to save the trainer's present state; `facts` lack the checksums. Waits for the save before, when
  // that is not done.
  void begin(CheckpointFacts facts);

  // This rank has work under way in the background. Throws the RunError that ended it: the path and the bytes
  // wanted.
  bool busy();

  // To be called now and then, when no rank is busy.
  void proceed();

  // Until nothing is under way.
  void settle();

  // Bytes of the copy that the first save makes of this rank's part and keeps for the next ones; 0 before. It
  // is no tensor, so no ledger knows it.
  Bytes copy_bytes() const { return copy_bytes_; }

  // The step of the newest whole checkpoint; 0: there is none. The same on all ranks after settle().
  std::int64_t newest() const { return newest_; }

 private:
  enum class Phase : std::uint8_t { Idle, Writing, Finishing };

  // A file that this rank writes, and the tensors in it.
  struct StagedFile {
    std::size_t number = 0;                   // among all files
    std::vector<at::Tensor> live;             // what training goes on with; empty: gathered from shards
    std::vector<files::StoredTensor> copies;  // parts of the staging buffer, once that is there
  };

  void find_own_files(Trainer& trainer, const model::Shape& shape);
  bool is_sharded(const CheckpointFile& file) const;
  void place_copies();
  void copy_state();
  void copy_shards(std::size_t number);
  void copy_into(const files::StoredTensor& copy, const at::Tensor& tensor);
  void write_files(std::int64_t step);
  std::vector<std::uint64_t> write_file(const StagedFile& file, const std::string& folder) const;
  void gather_sums();
  void finish();

  CheckpointDirectory directory_;
  std::int64_t keep_;
  std::int64_t newest_;
  comm::Communicator& pipeline_;
  std::vector<CheckpointFile> files_;
  std::vector<std::vector<std::uint64_t>> sums_;  // of each file: of its head, then of its tensors
  std::vector<StagedFile> own_;
  std::map<std::string, const Optimizer::Entry*> held_;  // this rank's, by parameter
  std::vector<std::size_t> sharded_;  // files of which every rank has shards; rank 0 writes them
  std::unique_ptr<std::byte[]> staging_;
  Bytes copy_bytes_ = 0;
  CheckpointFacts facts_;
  Phase phase_ = Phase::Idle;
  std::atomic<bool> given_up_ = false;
  std::future<void> work_;
};

}  // namespace penstock::train
