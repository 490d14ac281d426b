// SPDX-License-Identifier: Apache-2.0
#include "cli/train/copies_in_memory.h"

#include <filesystem>

#include "cli/agree.h"
#include "cli/tell.h"
#include "comm/launcher.h"
#include "files/mapped_file.h"
#include "train/checkpoint/run_number.h"

namespace penstock::cli {

std::string copies_of(const run::Options& options, comm::Communicator& world) {
  return train::copies_directory(options.train.buddy_dir, options.output.dir, comm::World(world));
}

std::optional<train::FoundCopies> newest_copies(const run::Options& options, std::int64_t step,
                                                comm::Communicator& world) {
  const comm::World ranks(world);
  const std::string number = train::run_number(options.output.dir, ranks),
                    file = train::number_file(options.output.dir);
  if (number.empty()) {
    if (world.rank() == 0 && files::is_there(file))
      tell_remark(file + " is damaged: copies of later steps that hosts may have in memory are left out");
    return {};
  }
  return train::find_copies(copies_of(options, world), number, step, ranks, [](const std::string& copy) {
    tell_remark(copy + " is damaged; this copy in memory is left out");
  });
}

void forget_older_copies(const run::Options& options, comm::Communicator& world) {
  train::clear_copies(copies_of(options, world));
  if (world.rank() == 0) train::forget_run_number(options.output.dir);
}

Bytes copies_given_back(const run::Options& options, bool resumes, comm::Communicator& world) {
  const std::string directory = copies_of(options, world);
  // A start that makes no copies leaves earlier copies alone until it has a checkpoint.
  return resumes && options.train.buddy_every == 0 ? 0 : train::bytes_of_copies(directory);
}

void bring_copies(const run::Options& options, int needed, bool dry_run, comm::Communicator& world) {
  const comm::World ranks(world);
  const std::string run = train::run_number(options.output.dir, ranks);
  if (run.empty()) return;
  const std::string directory = copies_of(options, world);
  if (!dry_run) {
    for (const std::string& failure : train::bring_copies(directory, run, comm::host_id(), needed, ranks))
      tell_remark(failure + "; this copy from a host without work is left out");
    return;
  }
  if (train::has_copies_to_bring(directory, run, comm::host_id(), needed, ranks) && world.rank() == 0)
    tell_remark(
        "hosts without work have copies of this run in memory: the run brings them to the others first, and "
        "may resume from a later step than this dry run says");
}

void forget_idle_copies(const run::Options& options, int needed, bool done, comm::Communicator& world) {
  if (!on_any_rank(options.train.buddy_every > 0, world)) return;  // the start has not touched copies either
  const std::string directory = copies_of(options, world);
  world.barrier();  // until the other ranks have removed theirs
  const bool idle = world.rank() >= needed;
  std::error_code error;
  const bool kept = !idle && (!done || std::filesystem::exists(directory, error));
  if (!on_any_rank(kept, world) && idle) train::clear_copies(directory);
}

}  // namespace penstock::cli
