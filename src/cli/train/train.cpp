// SPDX-License-Identifier: Apache-2.0
#include "cli/train/train.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/agree.h"
#include "cli/device_program.h"
#include "cli/gpu_messages.h"
#include "cli/tell.h"
#include "cli/train/check_weights.h"
#include "cli/train/copies_in_memory.h"
#include "cli/train/prepare.h"
#include "cli/train/recorded.h"
#include "cli/train/resolve_run.h"
#include "cli/train/resume.h"
#include "cli/train/run_outputs.h"
#include "cli/train/same_hosts.h"
#include "cli/train/start_table.h"
#include "cli/train/stop_signals.h"
#include "comm/launcher.h"
#include "comm/mpi.h"
#include "comm/rank_names.h"
#include "comm/single.h"
#include "comm/threads.h"
#include "files/atomic_file.h"
#include "files/directory.h"
#include "files/file_system.h"
#include "files/run_files.h"
#include "run/resolve/resolve.h"
#include "schedule/text.h"
#include "train/checkpoint/settings.h"
#include "train/machine.h"
#include "train/run.h"
#include "train/sample.h"

namespace penstock::cli {
namespace {

// A launcher hides the terminal from its ranks; PENSTOCK_PROGRESS=live reports that there is one.
bool draws_on_terminal() {
  const char* progress = std::getenv("PENSTOCK_PROGRESS");
  return isatty(STDERR_FILENO) == 1 || (progress && std::string_view(progress) == "live");
}

// Results depend bitwise on the thread count: the checkpoint's is kept unless the run file sets one.
int threads_of(const Prepared& prepared) {
  const auto& from = prepared.resumption.from;
  if (prepared.run.options.train.threads > 0 || !from) return prepared.run.threads;
  const int before = train::threads_of(from->facts.settings);
  return before > 0 ? before : prepared.run.threads;
}

// Prints skipped checkpoints and changes that affect bits on stderr. Returns the start table, with the
// resumed step and changes of the mesh.
std::string tell_start(const Prepared& prepared, int threads) {
  for (const std::string& remark : prepared.resumption.remarks) tell_remark(remark);
  const train::Host machine = train::this_host();
  std::string table =
      start_table(prepared.run, machine.processor + " (" + machine.instructions + ")", threads);
  const auto& from = prepared.resumption.from;
  if (!from) return table;
  for (const std::string& line : changed_settings(from->facts, prepared.run, threads)) tell_remark(line);
  table +=
      "resumes   after step " + std::to_string(from->facts.step) + ", from " + from->state->name() + "\n";
  for (const std::string& line : changed_mesh(prepared.run, from->facts.step))
    table += "changed   " + line + "\n";
  return table;
}

// The file reads back to the same run even if the schedule's file is lost: it names the copy next to it.
void write_run_file(const run::Run& run, const train::RunDirectory& directory) {
  run::Options options = run.options;
  const std::string named = options.schedule.file, copy = directory.file(files::kSchedule),
                    kept = train::kept_schedule(directory.path());
  if (!named.empty()) options.schedule.file = copy;
  // A copy that no run file names would be taken for somebody else's file: it comes after, and goes before.
  if (named.empty() && !kept.empty()) files::remove_all(kept);
  files::write_atomically(directory.config(), configuration_of(std::move(options)));
  std::error_code error;
  if (!named.empty() && !std::filesystem::equivalent(named, copy, error))
    files::write_atomically(copy, schedule::to_csv(run.schedule));
}

// Empty if none is asked for.
std::string sample_from(const std::string& weights_file, const TrainFlags& flags, const Prepared& prepared) {
  if (flags.sample <= 0) return {};
  return train::sample_of(prepared.run, *prepared.data, weights_file, flags.sample);
}

// Threads of ranks of one process find out by themselves that they share cores.
void tell_crowded(int threads) {
  if (!comm::launched_by_mpi()) return;
  const int ranks = comm::local_ranks(), cores = comm::processors_of_rank(ranks);
  if (threads <= cores) return;
  tell_remark(counted(threads, "thread") + " a rank, but " + counted(cores, "core") + " for each of the " +
              counted(ranks, "rank") + " here: train.threads = " + std::to_string(cores) +
              " would be faster");
}

void train_as_rank(const TrainFlags& flags, Prepared& prepared, int threads, comm::Communicator& world,
                   const comm::RankNames& names) {
  at::set_num_threads(threads);
  world.set_timeout(prepared.run.options.train.timeout);
  const bool talks = world.rank() == 0;
  train::Progress progress({.stream = std::cerr,
                            .terminal = draws_on_terminal(),
                            .width = train::terminal_width,
                            .now = steady_seconds});
  const train::RunObserver observer{
      .progress = [&](const train::ProgressState& state) { progress.update(state); },
      .say = [&](const std::string& line) { progress.say(line); }};
  if (talks) {
    tell_crowded(threads);
    std::cout << tell_start(prepared, threads) << std::flush;
    write_run_file(prepared.run, *prepared.directory);
  }
  const train::RunControl control{
      .resumed = prepared.resumption.from, .stop_asked = StopSignals::asked, .profile = flags.profile};
  const train::RunOutcome outcome =
      run_recorded(prepared.run, *prepared.data, world, names, talks ? prepared.directory.get() : nullptr,
                   observer, control);
  if (!talks) return;
  progress.finish();
  if (outcome.stopped) {
    std::cout << stop_line(prepared.run, outcome);
    return;
  }
  if (!outcome.timelines.empty()) write_pages(*prepared.directory);
  const std::string sample = sample_from(outcome.weights_file, flags, prepared);
  std::cout << result_table(prepared.run, outcome.summary, sample, *prepared.directory);
  if (flags.profile)
    std::cout << "profile   " << profile_of(outcome.program.value_or(prepared.run.program), outcome);
}

// The process reports one failure, which therefore names its rank.
void train_as_thread(const TrainFlags& flags, Prepared& prepared, int threads, comm::Communicator& world) {
  const comm::RankNames names = comm::names_of_ranks(prepared.run.mesh, world);
  try {
    train_as_rank(flags, prepared, threads, world, names);
  } catch (const comm::PeerFailure&) {
    throw;
  } catch (const RunError& failure) {
    throw RunError(failure_line(world.rank(), failure, names));
  } catch (const c10::Error& failure) {
    throw RunError(failure_line(world.rank(), failure, names));
  }
}

void refuse_threads(const TrainFlags& flags) {
  if (flags.ranks == 1) return;
  throw InputError("--ranks " + std::to_string(flags.ranks) +
                   " starts threads of one process, but mpirun has started the ranks; leave it out");
}

bool describes(const TrainFlags& flags) { return flags.print_config || flags.dry_run; }

// The text printed instead of training.
std::string description_of(const TrainFlags& flags, const Prepared& prepared, int ranks) {
  if (flags.print_config) return configuration_of(prepared.run.options);
  if (prepared.resumption.finished) return finished_line(prepared.run);
  return tell_start(prepared, threads_of(prepared)) + memory_remark(prepared.run, ranks);
}

// Errors common to all ranks are reported once, by rank 0, before any rank begins to work.
Refusal prepare_together(const TrainFlags& flags, comm::Communicator& world, Prepared& prepared) {
  const auto together = [&](auto&& work) { return agree(refusal_of(work), world); };
  Refusal refusal = together([&] { refuse_threads(flags); });
  run::Run run;
  if (!refusal) refusal = resolve_together(flags.source, world, run);
  if (!refusal) {
    const RanksHere here{.host = comm::local_ranks(),
                         .gpu = ranks_on_gpu(world),
                         .given_back = copies_given_back(run.options, flags.source.resumes, world)};
    refusal = agree_on_weights(world, [&](const WeightsShare& verified) {
      prepared = flags.print_config ? Prepared{.run = std::move(run)}
                                    : prepare(flags, std::move(run), world.size(), here, verified);
    });
  }
  if (!refusal) refusal = together([&] { require_same(agreement_of(prepared), world); });
  if (refusal || flags.print_config) return refusal;
  refusal = together([&] {
    if (world.rank() == 0) flags.dry_run ? check_directory(flags, prepared) : open_directory(flags, prepared);
  });
  const run::OutputOptions& output = prepared.run.options.output;
  if (!refusal && !output.gather)
    refusal = flags.dry_run ? refuse_other_run_files(output.dir, world)
                            : refuse_other_directories(output.dir, world);
  if (!refusal) refusal = together([&] { take_up(flags, prepared, world); });
  return refusal;
}

// No step is left to do, so copies left by an earlier start are useless, and a request to stop would end a
// later extension instead.
void tell_finished(const TrainFlags& flags, const Prepared& prepared, comm::Communicator& world) {
  forget_older_copies(prepared.run.options, world);
  if (world.rank() > 0) return;
  files::file_system().remove(prepared.directory->stop_request());
  std::error_code error;
  if (!std::filesystem::exists(prepared.directory->report(), error)) write_pages(*prepared.directory);
  at::set_num_threads(threads_of(prepared));
  std::cout << finished_line(prepared.run)
            << sample_lines(prepared.run,
                            sample_from(prepared.directory->file(files::kWeights), flags, prepared));
}

Exit refuse(const Refusal& refusal, const comm::Communicator& world) {
  if (world.rank() == 0) tell(refusal.text);
  return refusal.exit_code;
}

// Sets `names` once they are known, one per rank.
Exit train_as_world(const TrainFlags& flags, comm::Communicator& world, comm::RankNames& names) {
  Prepared prepared;
  const Refusal refusal = prepare_together(flags, world, prepared);
  if (refusal) return refuse(refusal, world);
  if (describes(flags)) {
    if (world.rank() == 0) std::cout << description_of(flags, prepared, world.size());
    return Exit::Done;
  }
  names = comm::names_of_ranks(prepared.run.mesh, world);
  if (prepared.resumption.finished) {
    tell_finished(flags, prepared, world);
  } else {
    train_as_rank(flags, prepared, threads_of(prepared), world, names);
  }
  return Exit::Done;
}

void tell_idle(int needed, int started) {
  if (needed < started)
    tell_remark(std::to_string(needed) + " of the " + std::to_string(started) + " ranks have work");
}

// Under a launcher, SIGTERM and SIGINT belong to the launcher.
Exit train_under_mpi(const TrainFlags& flags) {
  const StopSignals signals({SIGUSR1});
  const Seconds patience = patience_at_start(flags.source);
  Exit exit_code = Exit::Done;
  comm::RankNames names;
  comm::run_mpi(
      [&](comm::Communicator& world) {
        const auto train = [&](comm::Communicator& ranks) {
          const Exit done = train_as_world(flags, ranks, names);
          if (ranks.rank() > 0) ranks.set_timeout(0);  // rank 0 may still sample and report
          return done;
        };
        world.set_timeout(patience);
        // First, since the meaning of messages may differ between builds.
        const Refusal refusal = agree(refusal_of([&] { require_one_program(world); }), world);
        if (refusal) {
          exit_code = refuse(refusal, world);
          return;
        }
        const int needed = ranks_needed(flags.source, world);
        if (needed == world.size()) {
          exit_code = by_gpus(world, train);
          return;
        }
        const run::Options options = read_source(flags.source);
        if (flags.source.resumes && !flags.print_config) bring_copies(options, needed, flags.dry_run, world);
        const auto part = world.split(world.rank() < needed ? 0 : 1, world.rank());
        if (world.rank() == 0) tell_idle(needed, world.size());
        if (world.rank() < needed) exit_code = by_gpus(*part, train);
        if (world.rank() > 0) world.set_timeout(0);  // for rank 0, and without work for the others
        if (!describes(flags)) forget_idle_copies(options, needed, exit_code == Exit::Done, world);
      },
      [&](int rank, const std::exception& failure) { tell(failure_line(rank, failure, names)); }, patience);
  return exit_code;
}

void train_here(const TrainFlags& flags, const run::Run& resolved, int ranks) {
  const StopSignals signals({SIGUSR1, SIGTERM, SIGINT});
  Prepared prepared = prepare(flags, resolved, ranks, threads_here(flags, resolved.options, ranks));
  open_directory(flags, prepared);
  const auto alone = comm::make_single();
  take_up(flags, prepared, *alone);
  if (prepared.resumption.finished) return tell_finished(flags, prepared, *alone);
  const int threads = threads_of(prepared);
  if (ranks == 1)
    return train_as_rank(flags, prepared, threads, *alone, comm::names_of_ranks(prepared.run.mesh, *alone));
  comm::run_ranks(ranks,
                  [&](comm::Communicator& world) { train_as_thread(flags, prepared, threads, world); });
}

std::string describe_here(const TrainFlags& flags, const run::Run& resolved, int ranks) {
  if (flags.print_config) return configuration_of(resolved.options);
  Prepared prepared = prepare(flags, resolved, ranks, threads_here(flags, resolved.options, ranks));
  check_directory(flags, prepared);
  take_up(flags, prepared, *comm::make_single());
  return description_of(flags, prepared, ranks);
}

}  // namespace

Exit train(const TrainFlags& flags) {
  become_program_for_gpus(device_of(flags.source));
  if (comm::launched_by_mpi()) return train_under_mpi(flags);
  int ranks = flags.ranks;
  const run::Run resolved = resolved_here(flags.source, ranks);
  tell_idle(ranks, flags.ranks);
  if (describes(flags)) {
    std::cout << describe_here(flags, resolved, ranks);
  } else {
    train_here(flags, resolved, ranks);
  }
  return Exit::Done;
}

}  // namespace penstock::cli
