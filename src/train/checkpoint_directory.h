// SPDX-License-Identifier: Apache-2.0
// The directory in which a run's checkpoints stand, a directory each: step-000050 when it is whole,
// step-000050.partial while it is written or removed, step-000050.damaged when a resumed run has passed it
// over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/checkpoint_facts.h"

namespace penstock::train {

class CheckpointDirectory {
 public:
  explicit CheckpointDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string of_step(std::int64_t step) const;
  std::string partial(std::int64_t step) const { return of_step(step) + ".partial"; }

  // Steps of the checkpoints that have their final name, ascending; whether they are valid is not looked at.
  // None when there is no such directory.
  std::vector<std::int64_t> steps() const;

  // The following change the directory: for the one rank that holds the run directory's lock.

  // Removes what a run that was killed left half-written.
  void clear_partial() const;

  // The checkpoints after `step` get the name of damaged ones, so that the steps can be saved again.
  void set_aside_after(std::int64_t step) const;

  // Removes all but the newest `count`.
  void keep_newest(std::int64_t count) const;

 private:
  std::string path_;
};

// checkpoint.json of one checkpoint. Throws InputError naming the file: missing, damaged, or of another step
// than the directory's name says.
CheckpointFacts read_checkpoint_facts(const CheckpointDirectory& directory, std::int64_t step);

// Compares files with the checksums recorded of them: of every `shares`-th file, beginning with `share`, so
// that ranks can share the work. Throws InputError naming the file and the tensor: missing, cut short, of
// other bytes, or with other tensors than recorded.
void verify_checkpoint(const std::string& checkpoint, const CheckpointFacts& facts, int share, int shares);

}  // namespace penstock::train
