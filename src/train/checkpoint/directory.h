// SPDX-License-Identifier: Apache-2.0
// The directory of a run's checkpoints, one directory each: step-000050 when complete, step-000050.partial
// while being written or removed, step-000050.damaged when a resumed run skipped it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "files/run_files.h"
#include "run/run.h"
#include "train/checkpoint/facts.h"

namespace penstock::train {

class CheckpointDirectory {
 public:
  explicit CheckpointDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string of_step(std::int64_t step) const;
  std::string partial(std::int64_t step) const { return of_step(step) + files::kPartial; }

  // Steps of the checkpoints with a final name, ascending, not validated. Empty if the directory does not
  // exist.
  std::vector<std::int64_t> steps() const;

  // These change the directory; only the rank that holds the run directory's lock may call them.

  // Removes partial checkpoints of a killed run.
  void clear_partial() const;

  // Renames the checkpoints after `step` as damaged, so that the steps can be saved again.
  void set_aside_after(std::int64_t step) const;

  // Removes all but the newest `count`.
  void keep_newest(std::int64_t count) const;

 private:
  std::string path_;
};

// The directory of a run's checkpoints.
CheckpointDirectory checkpoints_in(const std::string& output_directory);
CheckpointDirectory checkpoints_of(const run::Run& run);

// Reads checkpoint.json of one checkpoint. Throws InputError naming the file if it is missing, damaged, or of
// another step than the directory's name.
CheckpointFacts read_checkpoint_facts(const CheckpointDirectory& directory, std::int64_t step);

// Verifies the recorded checksums of one of `shares` shares of the files, which have about equal bytes, so
// that ranks can split the work. Throws InputError naming the file and the tensor if a file is missing,
// truncated or damaged, or has other tensors than recorded. `after_tensor` is called after each tensor; may
// be empty.
void verify_checkpoint(const std::string& checkpoint, const CheckpointFacts& facts, int share, int shares,
                       const std::function<void()>& after_tensor = {});

// The same for a checkpoint's weights only, whatever its directory is called. A no-op if `folder` has no
// checkpoint.json: other folders of weights have no checksums. Refuses one that cannot be read (damaged, of
// an earlier version, another program's): the user may rename it to have the weights read unchecked.
void verify_weights(const std::string& folder, int share, int shares,
                    const std::function<void()>& after_tensor = {});

}  // namespace penstock::train
