// SPDX-License-Identifier: Apache-2.0
#include "cli/train/copies_in_memory.h"

#include "cli/tell.h"
#include "comm/launcher.h"
#include "train/checkpoint/host_copies.h"

namespace penstock::cli {

std::string copies_of(const run::Options& options, comm::Communicator& world) {
  return train::copies_directory(options.train.buddy_dir, options.output.dir, comm::World(world));
}

void forget_older_copies(const run::Options& options, comm::Communicator& world) {
  train::clear_copies(copies_of(options, world));
}

void bring_copies(const std::string& file, std::span<const std::string> overrides, int needed, bool dry_run,
                  comm::Communicator& world) {
  const run::Options options = run::read_options(file, overrides);
  if (options.train.buddy_every == 0) return;
  const comm::World ranks(world);
  const std::string directory = copies_of(options, world);
  if (!dry_run) return train::bring_copies(directory, comm::host_name(), needed, ranks);
  if (train::has_copies_to_bring(directory, comm::host_name(), needed, ranks) && world.rank() == 0)
    tell(
        "hosts without work have copies of this run in memory: the run brings them to the others first, and "
        "may resume from a later step than this dry run says");
}

}  // namespace penstock::cli
